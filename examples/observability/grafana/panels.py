"""What the dashboards have in common: panels, variables and their places, as
Grafana's JSON. What they show is in dashboards.py."""

import dataclasses

COLUMNS = 24
HEIGHT = 8
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

# Of the engine's series, what the variables at the top have chosen.
CHOSEN = 'model_name=~"$model",engine=~"$engine",instance=~"$instance"'


@dataclasses.dataclass
class Query:
    """PromQL, in which {} stands for the chosen series: a{} or a{,reason="x"}.
    The legend has a label as {{label}}."""

    expr: str
    legend: str = "{{model_name}}"

    def promql(self):
        return self.expr.replace("{}", "{" + CHOSEN + "}").replace("{,", f"{{{CHOSEN},")


@dataclasses.dataclass
class Panel:
    """`limits` colours from a value on: {0.85: "orange"}; below it is green.
    `hidden` are columns of a table."""

    title: str
    unit: str
    about: str
    queries: list
    kind: str = "timeseries"
    limits: dict = dataclasses.field(default_factory=dict)
    top: float | None = None
    stacked: bool = False
    width: int | None = None
    height: int = HEIGHT
    hidden: tuple = ()

    def json(self):
        out = {
            "type": self.kind,
            "title": self.title,
            "description": self.about,
            "datasource": DATASOURCE,
            "fieldConfig": {"defaults": self._defaults(), "overrides": []},
            "options": self._options(),
            "targets": [
                self._target(query, chr(ord("A") + i))
                for i, query in enumerate(self.queries)
            ],
        }
        if self.kind == "table":
            hidden = {name: True for name in ("Time", "__name__", "job", *self.hidden)}
            out["transformations"] = [
                {"id": "organize", "options": {"excludeByName": hidden}}
            ]
        return out

    def _defaults(self):
        steps = [{"color": "green", "value": None}]
        steps += [{"color": c, "value": v} for v, c in sorted(self.limits.items())]
        out = {"unit": self.unit, "thresholds": {"mode": "absolute", "steps": steps}}
        if self.kind not in ("heatmap", "table"):
            out["min"] = 0
        if self.top is not None:
            out["max"] = self.top
        if self.kind == "timeseries":
            out["color"] = {"mode": "palette-classic"}
            out["custom"] = {
                "drawStyle": "line",
                "lineWidth": 1,
                "fillOpacity": 25 if self.stacked else 8,
                "showPoints": "never",
                "spanNulls": False,
                "stacking": {"mode": "normal" if self.stacked else "none"},
                "thresholdsStyle": {"mode": "dashed" if self.limits else "off"},
            }
        elif self.kind != "heatmap":
            out["color"] = {"mode": "thresholds"}
        return out

    def _options(self):
        if self.kind == "timeseries":
            return {
                "legend": {
                    "displayMode": "table",
                    "placement": "bottom",
                    "calcs": ["lastNotNull", "max"],
                },
                "tooltip": {"mode": "multi", "sort": "desc"},
            }
        if self.kind == "heatmap":
            return {
                "calculate": False,
                "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64},
                "yAxis": {"unit": self.unit},
                "cellGap": 1,
                "tooltip": {"mode": "single", "yHistogram": True},
            }
        if self.kind == "table":
            return {"showHeader": True}
        return {
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "orientation": "auto",
            "textMode": "auto",
            "colorMode": "value",
            "graphMode": "area",
        }

    def _target(self, query, ref):
        out = {
            "refId": ref,
            "datasource": DATASOURCE,
            "editorMode": "code",
            "expr": query.promql(),
            "legendFormat": query.legend,
            "range": self.kind != "table",
            "instant": self.kind == "table",
        }
        if self.kind in ("heatmap", "table"):
            out["format"] = self.kind
        return out


@dataclasses.dataclass
class Row:
    title: str
    panels: list


@dataclasses.dataclass
class Variable:
    """`query` makes a list to choose from, `preset` a text to type over."""

    name: str
    label: str
    query: str | None = None
    preset: str | None = None

    def json(self):
        out = {"name": self.name, "label": self.label}
        if self.preset is not None:
            current = {"text": self.preset, "value": self.preset}
            return out | {
                "type": "textbox",
                "query": self.preset,
                "current": current,
                "options": [{**current, "selected": True}],
            }
        return out | {
            "type": "query",
            "datasource": DATASOURCE,
            "query": {"qryType": 1, "query": self.query, "refId": self.name},
            "definition": self.query,
            "refresh": 2,
            "sort": 3,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"], "selected": True},
        }


ENGINE_VARIABLES = [
    Variable("model", "Model", "label_values(vllm:num_requests_running, model_name)"),
    Variable(
        "instance",
        "Instance",
        'label_values(vllm:num_requests_running{model_name=~"$model"}, instance)',
    ),
    Variable(
        "engine",
        "Engine",
        "label_values(vllm:num_requests_running"
        '{model_name=~"$model",instance=~"$instance"}, engine)',
    ),
]


@dataclasses.dataclass
class Dashboard:
    name: str
    title: str
    about: str
    rows: list
    variables: list = dataclasses.field(default_factory=list)

    def json(self):
        return {
            "uid": f"vllm-{self.name}",
            "title": self.title,
            "description": self.about,
            "tags": ["vllm"],
            "schemaVersion": 39,
            "version": 1,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "10s",
            "time": {"from": "now-1h", "to": "now"},
            "timezone": "",
            "links": [
                {
                    "type": "dashboards",
                    "title": "vLLM",
                    "icon": "external link",
                    "tooltip": "",
                    "targetBlank": False,
                    "tags": ["vllm"],
                    "asDropdown": True,
                    "includeVars": True,
                    "keepTime": True,
                }
            ],
            "annotations": {
                "list": [
                    {
                        "name": "Alerts",
                        "datasource": DATASOURCE,
                        "enable": True,
                        "iconColor": "red",
                        "expr": 'ALERTS{alertname=~"Vllm.+",alertstate="firing"}',
                        "titleFormat": "{{alertname}}",
                        "textFormat": "{{instance}} {{model_name}}",
                        "step": "60s",
                    }
                ]
            },
            "templating": {
                "list": [
                    {
                        "name": "datasource",
                        "label": "Data source",
                        "type": "datasource",
                        "query": "prometheus",
                        "current": {},
                    }
                ]
                + [v.json() for v in ENGINE_VARIABLES + self.variables]
            },
            "panels": list(self._placed()),
        }

    def _placed(self):
        """Panels from left to right, in rows of equal height; a row whose panels
        have no width shares it out."""
        number, y = 0, 0
        for row in self.rows:
            number += 1
            yield {
                "id": number,
                "type": "row",
                "title": row.title,
                "collapsed": False,
                "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
                "panels": [],
            }
            x, y = 0, y + 1
            for panel in row.panels:
                number += 1
                width = panel.width or COLUMNS // min(len(row.panels), 3)
                if x + width > COLUMNS:
                    x, y = 0, y + panel.height
                place = {"x": x, "y": y, "w": width, "h": panel.height}
                yield {"id": number, "gridPos": place} | panel.json()
                x += width
            y += row.panels[-1].height
