//! Arithmetic of positions and attitudes: what a simulation of ships needs of vectors and quaternions.

/// Metres, metres a second or a direction: x, y, z.
pub(super) type Vector = [f64; 3];
/// An attitude: w, x, y, z, of length 1.
pub(super) type Quaternion = [f64; 4];

pub(super) fn add(a: Vector, b: Vector) -> Vector {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(super) fn sub(a: Vector, b: Vector) -> Vector {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(super) fn scale(a: Vector, by: f64) -> Vector {
    a.map(|part| part * by)
}

pub(super) fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(super) fn length(a: Vector) -> f64 {
    dot(a, a).sqrt()
}

/// The direction of a vector; x for one without length.
pub(super) fn direction(a: Vector) -> Vector {
    let length = length(a);
    if length > 0.0 { scale(a, 1.0 / length) } else { [1.0, 0.0, 0.0] }
}

/// The rotation `a` after the rotation `b`.
pub(super) fn multiply(a: Quaternion, b: Quaternion) -> Quaternion {
    [
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    ]
}

/// The rotation by so many radians about an axis of length 1.
pub(super) fn rotation(axis: Vector, angle: f64) -> Quaternion {
    let (sin, cos) = (angle / 2.0).sin_cos();
    let [x, y, z] = scale(axis, sin);
    [cos, x, y, z]
}

/// Where the nose of a ship points: its x axis.
pub(super) fn nose([w, x, y, z]: Quaternion) -> Vector {
    [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)]
}

/// The attitude, again of length 1 after many small turns.
pub(super) fn normal(q: Quaternion) -> Quaternion {
    let length = q.iter().map(|part| part * part).sum::<f64>().sqrt();
    if length > 0.0 { q.map(|part| part / length) } else { [1.0, 0.0, 0.0, 0.0] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::FRAC_PI_2;

    fn is_near(a: Vector, b: Vector) -> bool {
        length(sub(a, b)) < 1e-12
    }

    #[test]
    fn turns_follow_each_other() {
        let yaw = rotation([0.0, 0.0, 1.0], FRAC_PI_2);
        assert!(is_near(nose(yaw), [0.0, 1.0, 0.0]), "{:?}", nose(yaw));
        let twice = multiply(yaw, yaw);
        assert!(is_near(nose(twice), [-1.0, 0.0, 0.0]), "{:?}", nose(twice));
        let pitch = multiply(rotation([0.0, 1.0, 0.0], -FRAC_PI_2), yaw);
        assert!(is_near(nose(pitch), [0.0, 1.0, 0.0]), "about its own direction: {:?}", nose(pitch));
        assert!(is_near(nose(rotation([0.0, 1.0, 0.0], -FRAC_PI_2)), [0.0, 0.0, 1.0]));
    }

    #[test]
    fn nothing_has_a_direction_all_the_same() {
        assert_eq!(direction([0.0; 3]), [1.0, 0.0, 0.0]);
        assert_eq!(normal([0.0; 4]), [1.0, 0.0, 0.0, 0.0]);
    }
}
