"""Does what dispatch does in a tick, with boto3 and the logger, metrics and event of Powertools."""

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.data_classes import EventBridgeEvent, event_source
from plain import tick

logger = Logger(service="dispatch")
metrics = Metrics(namespace="Offhours", service="dispatch")


@logger.inject_lambda_context
@metrics.log_metrics
@event_source(data_class=EventBridgeEvent)
def handler(event, context):
    """Handles one tick of the timer."""
    dispatched = tick()
    handed_out = len(dispatched["starts"]) + len(dispatched["stops"])
    metrics.add_metric(name="HandedOut", unit=MetricUnit.Count, value=handed_out)
    logger.info("Ticked", extra={"handed_out": handed_out})
    return dispatched
