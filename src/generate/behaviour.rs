//! stub
pub struct Rule {
    pub condition: &'static str,
    pub expression: &'static str,
    pub message: &'static str,
}
pub struct Behaviour {
    pub rules: &'static [Rule],
    pub feedback: &'static [(&'static str, &'static str)],
}
pub fn of(_group: &str, _kind: &str, _custom: bool) -> Option<&'static Behaviour> {
    None
}
