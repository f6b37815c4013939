mod bodies;
mod facing;
mod flight;
mod maneuver;
mod orbit;
mod rules;
mod vector;
