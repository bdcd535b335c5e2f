//! The official clients of both clouds work against the simulator, so that our client is not only
//! tested against its own assumptions.

use tokio::process::Command;

use crate::{
    programs::{SimulatorProgram, python},
    support::{monday, root},
    traffic,
};

#[tokio::test]
async fn the_official_clients_work_against_the_simulator() {
    let fleet = include_str!("../examples/fleet.toml");
    let simulator = SimulatorProgram::start(fleet, monday("07:00:00")).await;
    let output = Command::new(python())
        .arg(root().join("tests/python/official_clients.py"))
        .args([&simulator.url, "simulated-do-token", "simulated-hz-token"])
        .output()
        .await
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{errors}");
    for check in [
        "pydo: Droplet resize",
        "pydo: snapshot, deletion, Droplet from the snapshot",
        "pydo: node pool scale",
        "hcloud: change of type",
        "hcloud: image, deletion, server from the image",
    ] {
        assert!(printed.contains(&format!("\nok     {check}")), "{printed}");
    }
    assert!(printed.trim_end().ends_with(" passed, 0 failed"), "{printed}");
    traffic::logged_ones_fit(&simulator.log().await);
}
