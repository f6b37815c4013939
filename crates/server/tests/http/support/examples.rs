//! The document's own examples, as requests.

use super::{Request, Server};
use serde_json::Value;
use std::fmt;

/// One operation of the document, as its examples call it.
pub(crate) struct Example<'d> {
    pub(crate) pattern: &'d str,
    pub(crate) method: String,
    pub(crate) operation: &'d Value,
    /// The path, filled with the examples of its parameters.
    pub(crate) path: String,
    pub(crate) body: Option<&'d Value>,
}

/// All operations of a document.
pub(crate) fn examples(document: &Value) -> Vec<Example<'_>> {
    let paths = document["paths"].as_object().expect("paths");
    let mut examples = Vec::new();
    for (pattern, item) in paths {
        for (method, operation) in item.as_object().expect("methods") {
            examples.push(example(document, pattern, method, operation));
        }
    }
    examples
}

fn example<'d>(document: &'d Value, pattern: &'d str, method: &str, operation: &'d Value) -> Example<'d> {
    let mut path = pattern.to_owned();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().expect("a name");
        if parameter["in"] == "path" {
            let example = &parameter["example"];
            assert!(!example.is_null(), "{method} {pattern}: {name} has no example");
            let text = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
            path = path.replace(&format!("{{{name}}}"), &text);
        }
    }
    assert!(!path.contains('{'), "{method} {pattern} does not tell of all of its parameters");
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let body = schema["$ref"].as_str().map(|reference| {
        let name = reference.rsplit('/').next().expect("a name");
        let example = &document["components"]["schemas"][name]["example"];
        assert!(!example.is_null(), "{method} {pattern}: {name} has no example");
        example
    });
    assert_eq!(body.is_some(), operation.get("requestBody").is_some(), "{method} {pattern}");
    Example { pattern, method: method.to_uppercase(), operation, path, body }
}

impl Example<'_> {
    pub(crate) fn request(&self, server: &Server) -> Request {
        let request = server.request(&self.method, &self.path);
        match self.body {
            Some(body) => request.json(body),
            None => request,
        }
    }

    pub(crate) async fn send(&self, server: &Server) -> super::Answer {
        self.request(server).send().await
    }
}

impl fmt::Display for Example<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.pattern)
    }
}
