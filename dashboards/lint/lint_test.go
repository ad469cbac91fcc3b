// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/dashboards"
	"github.com/bellwether-dev/bellwether/dashboards/lint"
)

func TestDashboardsAreClean(t *testing.T) {
	for _, f := range lint.Check(dashboards.All()) {
		t.Error(f)
	}
}

// subject is the dashboard that mutations break, with its panels by their kind.
type subject struct {
	*dashboards.Dashboard
	t *testing.T
}

// panel returns the first panel of a kind; the queries of all panels can be changed.
func (s subject) panel(kind string) *dashboard.Panel {
	s.t.Helper()
	for _, p := range s.Panels {
		if p.Panel != nil && p.Panel.Type == kind {
			return p.Panel
		}
	}
	s.t.Fatalf("no panel is a %s", kind)
	return nil
}

// query changes the first query of the first panel of a kind.
func (s subject) query(kind string, change func(*prometheus.Dataquery)) {
	s.t.Helper()
	p := s.panel(kind)
	q, ok := p.Targets[0].(prometheus.Dataquery)
	if !ok {
		s.t.Fatalf("the query is a %T", p.Targets[0])
	}
	change(&q)
	p.Targets[0] = q
}

// variable returns a variable.
func (s subject) variable(name string) *dashboard.VariableModel {
	s.t.Helper()
	i := slices.IndexFunc(s.Templating.List, func(v dashboard.VariableModel) bool { return v.Name == name })
	if i < 0 {
		s.t.Fatalf("no variable %s", name)
	}
	return &s.Templating.List[i]
}

func expr(text string) func(*prometheus.Dataquery) {
	return func(q *prometheus.Dataquery) { q.Expr = text }
}

const elsewhere = "elsewhere"

// Mutations of a dashboard, and the findings of the linter. Each rule has at least one mutation.
var mutations = map[string]struct {
	mutate func(subject)
	rule   string
	want   string
}{
	"a UID that is too long": {func(s subject) { s.Uid = ptr.To("bellwether-" + strings.Repeat("x", 30)) }, "identity",
		"at most 40"},
	"a UID twice":   {func(s subject) { s.Uid = ptr.To(dashboards.UIDCluster) }, "identity", "same UID"},
	"no tag":        {func(s subject) { s.Tags = nil }, "identity", "tag"},
	"another title": {func(s subject) { s.Title = ptr.To("Fleet") }, "identity", "must begin with"},

	"a panel without title": {func(s subject) { s.panel("table").Title = nil }, "title", "no title"},
	"a title twice": {func(s subject) { s.panel("table").Title = s.panel("timeseries").Title }, "title",
		"same title"},
	"a row without title":   {func(s subject) { s.Panels[0].RowPanel.Title = nil }, "title", "row 1 has no title"},
	"a panel not described": {func(s subject) { s.panel("stat").Description = nil }, "description", "what to do"},
	"a description is a title": {
		func(s subject) { s.panel("stat").Description = ptr.To("The number of silent clusters.") },
		"description",
		"what to do",
	},
	"dashboard not described": {func(s subject) { s.Description = ptr.To("The fleet.") }, "description",
		"two sentences"},
	"no unit": {func(s subject) { s.panel("timeseries").FieldConfig.Defaults.Unit = nil }, "unit",
		"there is no unit"},
	"a data source of its own": {
		func(s subject) { s.panel("table").Datasource = &common.DataSourceRef{Uid: ptr.To(elsewhere)} },
		"datasource",
		"${datasource}",
	},
	"a query's data source": {func(s subject) {
		s.query("table",
			func(q *prometheus.Dataquery) { q.Datasource = nil })
	}, "datasource", "${datasource}"},
	"an annotation elsewhere": {func(s subject) { s.Annotations.List[0].Datasource = nil }, "datasource",
		"${datasource}"},
	"a variable from elsewhere": {func(s subject) { s.variable("operator").Datasource = nil }, "datasource",
		"${datasource}"},
	"no data source variable": {func(s subject) { s.variable("datasource").Type = dashboard.VariableTypeConstant },
		"datasource", "of type datasource"},

	"no cluster variable": {func(s subject) {
		s.Templating.List = slices.DeleteFunc(s.Templating.List,
			func(v dashboard.VariableModel) bool { return v.Name == "cluster" })
	}, "variables", "cluster is missing"},
	"an unknown variable": {func(s subject) { s.query("stat", expr(`sum(up{job=~"$job"})`)) }, "variables",
		"no variable job"},
	"a variable that is idle": {func(s subject) {
		v := *s.variable("operator")
		v.Name = "idle"
		s.Templating.List = append(s.Templating.List, v)
	}, "variables", "no query uses"},
	"several values as one": {func(s subject) {
		s.query("stat",
			expr(`sum(bellwether_fleet_cluster_online{cluster="$cluster"})`))
	}, "variables", "match it with =~"},
	"all as a list": {func(s subject) { s.variable("cluster").AllValue = nil }, "variables", "all values"},

	"an unknown metric": {func(s subject) {
		s.query("stat",
			expr(`count(bellwether_operator_expectd{cluster=~"$cluster"})`))
	}, "metric", "bellwether_operator_expectd"},
	"an unknown metric in an annotation": {func(s subject) {
		s.Annotations.List[0].Expr = ptr.To(`max by (operator) (bellwether_waves{operator=~"$operator"})`)
	}, "metric", "bellwether_waves"},
	"any cluster": {func(s subject) {
		s.query("stat",
			expr(`count(bellwether_operator_expected{operator=~"$operator"})`))
	}, "selection", `cluster=~"$cluster"`},
	"any operator": {func(s subject) {
		s.query("stat",
			expr(`min(bellwether:slo_budget_left:ratio{cluster=~"$cluster"})`))
	}, "selection", `operator=~"$operator"`},
	"any namespace": {func(s subject) {
		s.query("stat", expr(`min(bellwether:slo_budget_left:ratio{cluster=~"$cluster",operator=~"$operator"})`))
	}, "selection", `operator_namespace=~"$operator_namespace"`},
	"two operators as one": {func(s subject) {
		s.query("stat", expr(`max by (operator) (bellwether_operator_ready)`))
	}, "operator", "both identify an operator"},
	"a counter's value": {func(s subject) {
		s.query("timeseries", expr(`sum(bellwether_operator_install_total{cluster=~"$cluster"})`))
	}, "counter", "rate()"},
	"a counter's average": {func(s subject) {
		s.query("timeseries", expr(`avg_over_time(controller_runtime_reconcile_total{cluster=~"$cluster"}[5m])`))
	}, "counter", "rate()"},

	"a line for each cluster": {func(s subject) {
		s.query("timeseries", expr(`max by (cluster) (bellwether_fleet_cluster_online{cluster=~"$cluster"})`))
	}, "size", "a series for each cluster"},
	"a line for each cluster, as it is": {func(s subject) {
		s.query("timeseries", expr(`bellwether_fleet_cluster_online{cluster=~"$cluster"} == 0`))
	}, "size", "a series for each cluster"},
	"a line for each cluster, by its legend": {func(s subject) {
		s.query("timeseries", func(q *prometheus.Dataquery) { q.LegendFormat = ptr.To("{{cluster}}") })
	}, "size", "a series for each cluster"},
	"a line for each instance": {func(s subject) {
		s.query("timeseries", expr(`max without (cluster) (process_resident_memory_bytes{cluster=~"$cluster"})`))
	}, "size", "a series for each instance"},
	"too many lines": {func(s subject) {
		s.query("timeseries", expr(`topk(100, bellwether_fleet_cluster_online{cluster=~"$cluster"})`))
	}, "size", "at most 40"},
	"some lines, without a word": {func(s subject) {
		s.query("timeseries", expr(`topk(7, bellwether_fleet_cluster_online{cluster=~"$cluster"})`))
	}, "size", "shows 7"},

	"no legend": {func(s subject) { s.query("timeseries", func(q *prometheus.Dataquery) { q.LegendFormat = nil }) },
		"legend", "query A has no legend"},
	"empty is mute": {func(s subject) { s.panel("table").FieldConfig.Defaults.NoValue = nil }, "nodata", "no data"},
	"drawn over gaps": {func(s subject) {
		s.panel("timeseries").FieldConfig.Defaults.Custom.(*timeseries.FieldConfig).SpanNulls = &common.BoolOrFloat64{
			Bool: ptr.To(true),
		}
	}, "nulls", "over gaps"},
	"thresholds out of order": {func(s subject) {
		s.panel("stat").FieldConfig.Defaults.Thresholds.Steps = []dashboard.Threshold{{Color: "red"},
			{Value: ptr.To(2.), Color: "green"}, {Value: ptr.To(1.), Color: "blue"}}
	}, "thresholds", "in order"},
	"a first threshold with a bound": {func(s subject) {
		s.panel("stat").FieldConfig.Defaults.Thresholds.Steps = []dashboard.Threshold{{Value: ptr.To(0.), Color: "red"},
			{Value: ptr.To(2.), Color: "green"}}
	}, "thresholds", "without a bound"},
	"a number over time": {func(s subject) {
		s.query("stat", func(q *prometheus.Dataquery) { q.Instant, q.Range = nil, ptr.To(true) })
	}, "instant", "must be instant"},
	"a line of now": {func(s subject) {
		s.query("timeseries", func(q *prometheus.Dataquery) { q.Instant, q.Range = ptr.To(true), nil })
	}, "instant", "about the range"},
	"a table's form": {func(s subject) { s.query("table", func(q *prometheus.Dataquery) { q.Format = nil }) },
		"instant", "format table"},

	"panels that overlap": {func(s subject) { s.panel("table").GridPos.Y-- }, "layout", "covers"},
	"a panel too wide":    {func(s subject) { s.panel("table").GridPos.W = 25 }, "layout", "24 columns"},
	"a hole": {func(s subject) { s.panel("timeseries").GridPos.W-- }, "layout",
		"cells of the grid are empty"},
	"an id twice": {func(s subject) { s.panel("table").Id = s.panel("timeseries").Id }, "layout", "has the id"},

	"a column of nothing": {func(s subject) { s.renames()["opertor"] = "Operator" }, "columns",
		`"Operator" (opertor)`},
	"a value of no query":    {func(s subject) { s.renames()["Value #Z"] = "Last" }, "columns", "Value #Z"},
	"a column without title": {func(s subject) { s.renames()["operator"] = "" }, "columns", "operator has no title"},
	"no titles at all":       {func(s subject) { s.panel("table").Transformations = nil }, "columns", "no titles"},
	"a link takes a column": {func(s subject) {
		s.link(
			"/d/bellwether-cluster?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields.Cluster}",
		)
	}, "links", `column "Cluster"`},
	"a link takes a label": {func(s subject) {
		s.link(
			"/d/bellwether-cluster?${datasource:queryparam}&${__url_time_range}&var-cluster=${__field.labels.cluster}",
		)
	}, "links", "label cluster"},
	"no way to the others":  {func(s subject) { s.Links = nil }, "links", "other dashboards"},
	"forgets the variables": {func(s subject) { s.Links[0].IncludeVars = false }, "links", "other dashboards"},
	"a link to nowhere": {
		func(s subject) { s.link("/d/bellwether-nowhere?${datasource:queryparam}&${__url_time_range}") },
		"links",
		"no dashboard bellwether-nowhere",
	},
	"a link with a wrong var": {func(s subject) {
		s.link("/d/bellwether-cluster?${datasource:queryparam}&${__url_time_range}&var-team=x")
	}, "links", "no variable team"},
	"a link to another time": {func(s subject) { s.link("/d/bellwether-cluster?var-cluster=x") }, "links",
		"keep the time"},
	"a link outside": {func(s subject) { s.link("https://example.com") }, "links", "does not begin with /d/"},
	"a mark without text": {func(s subject) { s.Annotations.List[0].TextFormat = nil }, "annotation",
		"needs a name"},
}

// renames returns the titles of the first table's columns.
func (s subject) renames() map[string]string {
	s.t.Helper()
	for _, t := range s.panel("table").Transformations {
		if options, ok := t.Options.(map[string]any); ok && t.Id == "organize" {
			return options["renameByName"].(map[string]string)
		}
	}
	s.t.Fatal("the table has no titles")
	return nil
}

func (s subject) link(url string) {
	s.panel("timeseries").FieldConfig.Defaults.Links = []dashboard.DashboardLink{{Title: "x", Url: &url}}
}

// TestEveryRuleBites breaks the fleet's dashboard in one way at a time. A rule
// without a mutation would not be tested.
func TestEveryRuleBites(t *testing.T) {
	tried := map[string]bool{}
	for name, m := range mutations {
		tried[m.rule] = true
		t.Run(name, func(t *testing.T) {
			all := dashboards.All()
			m.mutate(subject{&all[0], t})
			found := lint.Check(all)
			if !slices.ContainsFunc(found, func(f lint.Finding) bool {
				return f.Rule == m.rule &&
					strings.Contains(f.Message, m.want)
			}) {
				t.Errorf("nothing of %s says %q; found: %v", m.rule, m.want, found)
			}
		})
	}
	for _, r := range lint.Rules() {
		if !tried[r.Name] {
			t.Errorf("no mutation breaks %s", r.Name)
		}
		if !strings.HasSuffix(r.Why, ".") {
			t.Errorf("%s does not say why", r.Name)
		}
	}
}

func TestExpand(t *testing.T) {
	got := lint.Expand(`a{cluster=~"$cluster",operator=~"${operator:regex}",sli=~"$sli|"}[$__rate_interval]`,
		map[string]string{"cluster": "eu", "__rate_interval": "2m"})
	if diff := cmp.Diff(`a{cluster=~"eu",operator=~".*",sli=~".*|"}[2m]`, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestQueries counts the queries for a real Prometheus.
func TestQueries(t *testing.T) {
	kinds := map[lint.Kind]int{}
	for _, d := range dashboards.All() {
		for _, q := range lint.ListQueries(d) {
			kinds[q.Kind]++
			// $1 in label_replace is not a variable.
			expanded := strings.ReplaceAll(lint.Expand(q.Expr, nil), `"$1"`, "")
			if q.Expr == "" || q.Where == "" || strings.Contains(expanded, "$") {
				t.Errorf("%+v", q)
			}
		}
	}
	if kinds[lint.KindPanel] < 100 || kinds[lint.KindAnnotation] < 10 || kinds[lint.KindVariable] < 14 {
		t.Errorf("queries by kind: %v", kinds)
	}
}
