"""`offhours ui` as a person uses it in a browser."""

UNFOLD = "() => document.querySelectorAll('details').forEach(one => one.open = true)"

VIOLATIONS = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.map(one => [one.id, one.nodes[0].failureSummary]);
}"""


def test_a_button_shows_its_command_and_runs_it_once_agreed(ui, browser, axe):
    page = browser.new_page(viewport={"width": 360, "height": 800})
    page.goto(ui)
    page.evaluate(UNFOLD)
    page.evaluate(axe)
    assert page.evaluate(VIOLATIONS) == []
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 360

    machine = page.locator("details.machine", has_text="off").first
    machine.get_by_role("button", name="Keep running for 2 h").click()
    assert page.get_by_role("heading", name="Run this command?").is_visible()
    command = page.locator("code").inner_text()
    assert command.startswith("offhours override running "), command
    resource = command.split()[3]
    page.evaluate(axe)
    assert page.evaluate(VIOLATIONS) == []

    page.get_by_role("button", name="Run it").click()
    page.wait_for_selector("h2#schedules")
    page.evaluate(UNFOLD)
    machine = page.locator("details.machine", has_text=resource)
    machine.get_by_role("button", name="End the override").click()
    assert page.locator("code").inner_text() == f"offhours override clear {resource}"
    page.get_by_role("link", name="Back to the page").click()
    page.wait_for_selector("h2#schedules")
    page.close()
