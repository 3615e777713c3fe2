//! `controller`: runs until it is told to stop.

use super::{Exit, fail};
use crate::cli::ControllerArgs;
use crate::controller::{self, Options};
use crate::generate::settings::Env;
use crate::telemetry;
use k8s_openapi::jiff::Timestamp;
use std::time::Instant;
use tokio::runtime;

pub(super) fn run(args: &ControllerArgs, env: &Env) -> Exit {
    telemetry::init(args.log_level, args.log_format);
    let options = match Options::resolve(args, env) {
        Ok(options) => options,
        Err(why) => return fail(&format!("error: {why}\n")),
    };
    // One thread: what it does is waiting, and what little it computes is in order.
    let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("error: the controller cannot be started: {error}\n")),
    };
    match runtime.block_on(controller::run(&options, CLOCKS)) {
        Ok(()) => Exit::SUCCESS,
        Err(why) => fail(&format!("error: {why}\n")),
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where the controller is told the time")]
const CLOCKS: controller::Clocks = controller::Clocks {
    time: Timestamp::now,
    elapsed: Instant::now,
};
