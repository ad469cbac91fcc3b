// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package alerts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const (
	// faster is how much faster time passes for the rules: a slice takes a second.
	faster = 60
	limit  = 5 * time.Minute
)

// agent is what an agent exports of the operator echo of the namespace fleet. Beside it run other operators of that
// name, of further namespaces, which are good unless others says otherwise.
type agent struct {
	version string
	csv     string
	// others is csv of the other operators. Empty: they are good.
	others string
	// desired is how many replicas are asked for, of which one is available. Zero means one.
	desired int
	// silent agents answer no scrape.
	silent bool
}

// fixture is a fleet's exporters: an agent for each cluster, and the hub with the inventory of all.
type fixture struct {
	mu       sync.Mutex
	clusters map[string]*agent
	servers  map[string]*httptest.Server
	// namespaces are those of the other operators.
	namespaces []string
}

const oddCluster = `odd "chars" \ {=~} $x é`

func newFixture(t *testing.T, clusters map[string]*agent, namespaces ...string) *fixture {
	t.Helper()
	f := &fixture{clusters: clusters, servers: map[string]*httptest.Server{}, namespaces: namespaces}
	for name := range clusters {
		f.servers[name] = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter,
			_ *http.Request) {
			f.agent(name, out)
		}))
	}
	f.servers["hub"] = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter,
		_ *http.Request) {
		f.hub(out)
	}))
	for _, s := range f.servers {
		t.Cleanup(s.Close)
	}
	return f
}

// change changes some clusters at once.
func (f *fixture) change(change func(*agent), names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		change(f.clusters[name])
	}
}

func (f *fixture) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.clusters, name)
}

// jobs are those of the clusters that there are.
func (f *fixture) jobs() []prometheus.Job {
	f.mu.Lock()
	defer f.mu.Unlock()
	var jobs []prometheus.Job
	for i, name := range append(slices.Sorted(maps.Keys(f.clusters)), "hub") {
		jobs = append(jobs, prometheus.Job{Name: fmt.Sprintf("job-%d", i),
			Targets: []string{strings.TrimPrefix(f.servers[name].URL, "http://")}})
	}
	return jobs
}

func (f *fixture) agent(name string, out http.ResponseWriter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.clusters[name]
	if !ok || a.silent {
		http.Error(out, "silent", http.StatusServiceUnavailable)
		return
	}
	operators := map[string]string{"fleet": a.csv}
	for _, namespace := range f.namespaces {
		operators[namespace] = cmp.Or(a.others, "1")
	}
	for namespace, succeeded := range operators {
		_, _ = fmt.Fprintf(out,
			"bellwether_operator_expected{%[1]s} 1\nbellwether_operator_upgrading{%[1]s} 0\n"+
				"bellwether_operator_catalog_ready{%[1]s} 1\nbellwether_operator_csv_succeeded{%[1]s} %[3]s\n"+
				"bellwether_operator_info{%[1]s,namespace=%[5]q,csv=\"echo.v%[2]s\",version=%[2]q,"+
				"release=\"of %[2]s\"} 1\n"+
				"bellwether_operator_deployment_replicas_desired{%[1]s,deployment=\"d\"} %[4]d\n"+
				"bellwether_operator_deployment_replicas_available{%[1]s,deployment=\"d\"} 1\n",
			ofInstall(name, namespace), a.version, succeeded, max(1, a.desired), "ns-"+namespace)
	}
}

// ofInstall are the labels of the operator echo of a namespace on a cluster.
func ofInstall(cluster, namespace string) string {
	return fmt.Sprintf("cluster=%q,operator_namespace=%q,operator=\"echo\"", cluster, namespace)
}

func (f *fixture) hub(out http.ResponseWriter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = fmt.Fprintf(out, "bellwether_fleet_clusters{state=\"online\"} %d\n", len(f.clusters))
	for name := range f.clusters {
		_, _ = fmt.Fprintf(out, "bellwether_fleet_cluster_online{cluster=%q} 1\n", name)
		for _, namespace := range append([]string{"fleet"}, f.namespaces...) {
			_, _ = fmt.Fprintf(out, "bellwether_operator_expected{%s} 1\n", ofInstall(name, namespace))
		}
	}
}

func bad(a *agent)  { a.csv = "0" }
func good(a *agent) { a.csv = "1" }

// live is a server that lives in the faster time.
type live struct {
	*prometheus.Server
	t *testing.T
}

// compressed are the rules of the default profile with another target for csv, as a file.
func compressed(t *testing.T, target slo.PPM) (map[string][]byte, prometheus.RuleState) {
	t.Helper()
	objectives := slo.DefaultProfile()
	objectives[0].Target = target
	rules, err := slo.Build(slo.Set{Default: objectives})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := Compress(rules.All(), faster)
	if err != nil {
		t.Fatal(err)
	}
	text, err := slo.RuleFile(groups)
	if err != nil {
		t.Fatal(err)
	}
	state := prometheus.RuleState{Groups: len(groups)}
	state.Recording, state.Alerting = rules.Count()
	return map[string][]byte{"slo.yaml": text}, state
}

// eventually polls until a check passes.
func (l live) eventually(what string, check func(context.Context) error) {
	l.t.Helper()
	testenv.Eventually(l.t, limit, what, check)
}

// values are those of a query by a label.
func (l live) values(ctx context.Context, promql string, by model.LabelName) (map[string]float64, error) {
	found, err := l.Query(ctx, promql, time.Time{})
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, sample := range found {
		out[string(sample.Metric[by])] = float64(sample.Value)
	}
	return out, nil
}

// one is the value of a query that has one result.
func (l live) one(ctx context.Context, promql string) (float64, error) {
	found, err := l.Query(ctx, promql, time.Time{})
	if err != nil {
		return 0, err
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("%s gives %v, want one value", promql, found)
	}
	return float64(found[0].Value), nil
}

// firing waits until exactly these values of a label fire.
func (l live) firing(what, selector string, by model.LabelName, want ...string) {
	l.t.Helper()
	l.eventually(what, func(ctx context.Context) error {
		found, err := l.values(ctx, fmt.Sprintf("ALERTS{alertstate=\"firing\",%s}", selector), by)
		if err != nil {
			return err
		}
		got := slices.Sorted(maps.Keys(found))
		slices.Sort(want)
		if !slices.Equal(got, want) {
			return fmt.Errorf("of %s there fire %q, want %q", selector, got, want)
		}
		return nil
	})
}

// never fails if there was ever an alert.
func (l live) never(what, selector string) {
	l.t.Helper()
	found, err := l.Query(l.t.Context(), fmt.Sprintf("max_over_time(ALERTS{%s}[1h])", selector), time.Time{})
	if err != nil {
		l.t.Fatal(err)
	}
	if len(found) != 0 {
		l.t.Errorf("%s, but there was %v", what, found)
	}
}

// TestLive has a real Prometheus scrape a fleet on which things happen. An hour takes a minute.
func TestLive(t *testing.T) {
	t.Parallel() // it waits most of the time
	f := newFixture(t, map[string]*agent{
		"good": {version: "1.0.0", csv: "1"}, "outage": {version: "1.1.0", csv: "1"},
		"nan":      {version: "1.2.0", csv: "1"},
		oddCluster: {version: "1.3.0", csv: "1"}, "silent": {version: "1.4.0", csv: "1"},
		"gone":   {version: "1.5.0", csv: "1"},
		"twin-a": {version: "2.0.0", csv: "1"}, "twin-b": {version: "2.0.0", csv: "1"},
	}, "staging")
	rules, want := compressed(t, 995_000)
	dir := t.TempDir()
	server, err := prometheus.Start(t.Context(), prometheus.Options{
		Dir: dir, Binary: binary(t, build.Prometheus), Rules: rules, Jobs: f.jobs(), Interval: time.Second,
		Lookback: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop(context.Background()) })
	l := live{server, t}

	l.eventually("all rules are evaluated without an error", func(ctx context.Context) error {
		state, err := l.Evaluated(ctx)
		if err == nil && state != want {
			t.Fatalf("loaded are %+v, want %+v", state, want)
		}
		return err
	})
	l.eventually("every cluster has slices and a whole budget", func(ctx context.Context) error {
		n, err := l.one(ctx, `count(bellwether:slo_budget_left:ratio{sli="csv"} == 1) + `+
			`count(bellwether:sli_bad:bool{sli="csv"} == 0)`)
		if err == nil && n != 32 {
			return fmt.Errorf("have %v, want 16 of each", n)
		}
		return err
	})
	l.never("nothing is wrong yet", `operator="echo"`)

	f.change(bad, "outage", oddCluster, "gone", "twin-a", "twin-b")
	f.change(func(a *agent) { a.csv = "NaN" }, "nan")
	f.change(func(a *agent) { a.silent = true }, "silent")
	l.firing("pages of single clusters", `alertname="BellwetherOperatorSLOBurn",severity="page"`, "cluster", "outage",
		oddCluster, "gone", "nan")
	l.firing("one page of a release that is bad on two clusters", `alertname="BellwetherReleaseSLOBurn"`, "version",
		"2.0.0")
	l.firing("one page of a cluster that nothing is known of", `alertname="BellwetherClusterFailing"`, "cluster", "silent")
	l.annotated()
	l.labelled()

	// A cluster leaves while it is broken, Prometheus crashes, and an operator is upgraded in the middle of its outage.
	f.remove("gone")
	if err := l.SetJobs(t.Context(), f.jobs()...); err != nil {
		t.Fatal(err)
	}
	const spent = `sum_over_time(bellwether:sli_bad:slice{cluster="outage",operator_namespace="fleet",sli="csv"}[12h])`
	before, err := l.one(t.Context(), spent)
	if err != nil {
		t.Fatal(err)
	}
	l.Kill()
	f.change(func(a *agent) { a.version = "1.1.1" }, "outage")
	back := time.Now()
	if err := l.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.eventually("the page goes on after the crash", func(ctx context.Context) error {
		at, err := l.one(ctx,
			`timestamp(ALERTS{alertstate="firing",alertname="BellwetherOperatorSLOBurn",cluster="outage"})`)
		if err == nil && at < float64(back.Unix()+1) {
			return fmt.Errorf("the last sample is of before")
		}
		return err
	})
	if after, err := l.one(t.Context(), spent); err != nil || after <= before {
		t.Errorf("bad slices of the budget: %v before the crash and %v after, want more (%v)", before, after, err)
	}
	l.eventually("bad slices have the new version", func(ctx context.Context) error {
		_, err := l.one(ctx, `bellwether:sli_bad_version:slice{cluster="outage",version="1.1.1"}`)
		return err
	})

	f.change(good, "outage", oddCluster, "nan", "twin-a", "twin-b")
	l.firing("no page after recovery but that of the silent cluster", `severity="page"`, "cluster", "silent")
	l.never("nothing is said of single SLIs of the silent cluster", `alertname="BellwetherSLIAbsent"`)
	l.never("the good operator of the same name burns nothing",
		`operator_namespace="staging",alertname!="BellwetherSLIAbsent"`)
	l.eventually("the good operator of the same name has all of its budget", func(ctx context.Context) error {
		n, err := l.one(ctx, `min(bellwether:slo_budget_left:ratio{operator_namespace="staging",sli="csv"})`)
		if err == nil && n != 1 {
			return fmt.Errorf("it has %v left", n)
		}
		return err
	})
	l.eventually("the budget is spent for good", func(ctx context.Context) error {
		left, err := l.values(ctx, `bellwether:slo_budget_left:ratio{operator_namespace="fleet",sli="csv"}`, "cluster")
		if err == nil && (left["outage"] >= 1 || left["good"] != 1) {
			return fmt.Errorf("left are %v", left)
		}
		return err
	})
	l.never("the good cluster burns nothing", `cluster="good",alertname!="BellwetherSLIAbsent"`)
	l.never("nobody misses who is gone", `alertname="BellwetherSLIAbsent",cluster="gone"`)

	rules, _ = compressed(t, 950_000)
	if err := l.SetRules(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
	l.eventually("an edit is noted", func(ctx context.Context) error {
		edited, err := l.values(ctx, `bellwether:slo_edited:bool{operator_namespace="fleet"}`, "sli")
		if err == nil && (edited["csv"] != 1 || len(edited) != 1) {
			return fmt.Errorf("edited are %v, want csv", edited)
		}
		return err
	})
	l.clean(dir)
}

// annotated reads what an alert tells people.
func (l live) annotated() {
	l.t.Helper()
	client, err := l.API()
	if err != nil {
		l.t.Fatal(err)
	}
	found, err := client.Alerts(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	i := slices.IndexFunc(found.Alerts, func(a promv1.Alert) bool { return string(a.Labels["cluster"]) == oddCluster })
	if i < 0 {
		l.t.Fatalf("the alert of %s is gone", oddCluster)
	}
	for name, part := range map[model.LabelName]string{"summary": "fleet/echo burns its csv budget", "budget_left": "%",
		"burn": "."} {
		if text := string(found.Alerts[i].Annotations[name]); !strings.Contains(text, part) ||
			strings.Contains(text, "<no value>") {
			l.t.Errorf("annotation %s is %q, want %q in it", name, text, part)
		}
	}
}

// recordedElsewhere are recorded only in states that the fleet of TestLive is not in when it looks. The values are
// tests of those states.
var recordedElsewhere = map[string]string{
	series.SLOEdited:      "TestLive, later",
	series.SLOClusterBurn: "TestOneFailureIsOneNotification",
	// Clusters whose slices are late or missing.
	series.ClusterLate: "TestLateIsNotGone", series.SlicesMissing: "TestLiveOutage",
	// SLIs of one's own that count requests.
	series.SLIRequests: "TestBudgetingMethods", series.SLIRequestsSum: "TestBudgetingMethods",
	series.SLOMinRequests: "TestFewRequests",
	// A version that has recovered, while there is a page about it.
	series.ReleaseRecovered: "TestRegrownFailures", series.ReleaseRegrown: "TestRegrownFailures",
	// Limits of custom resources, and containers that restart.
	series.CustomResourcesLimit: "TestGrowth", series.CustomResourcesGrowthLimit: "TestGrowth",
	series.CustomResourcesExcess: "TestGrowth", series.RecentRestarts: "TestAlertSaysWhatFailsOnACluster",
	// Time that a silence excludes, and budgets of which almost nothing is left.
	series.SLIBadExcluded: "TestTimeIsExcludedOnTheHub", series.SLOBudgetExcluding: "TestTimeIsExcludedOnTheHub",
	series.SLOBudgetCluster: "TestExhaustedBudgets",
	// Critical operators.
	series.SLIBadCritical: "TestCriticalOperators", series.SLIBadCriticalSum: "TestCriticalOperators",
	series.SLIBadCriticalVersion: "TestCriticalOperators", series.OperatorBadNow: "TestCriticalOperators",
	series.AgentScrapeSlices: "TestCriticalOperators", series.ClusterBadNow: "TestCriticalOperators",
	series.ReleaseBadNow: "TestCriticalOperators", series.SLOGuardCritical: "TestCriticalOperators",
}

// labelled compares the labels of what the rules record with those that package series has of it.
func (l live) labelled() {
	l.t.Helper()
	for _, s := range series.Recorded() {
		if recordedElsewhere[s.Name] != "" {
			continue
		}
		found, err := l.Query(l.t.Context(), fmt.Sprintf("{__name__=~%q}", s.Name+"([0-9]+[mhd])?"), time.Time{})
		if err != nil || len(found) == 0 {
			l.t.Errorf("nobody records %s (%v)", s.Name, err)
			continue
		}
		want := append([]string{model.MetricNameLabel}, s.Labels...)
		for _, sample := range found {
			for name := range sample.Metric {
				if !slices.Contains(want, string(name)) {
					l.t.Errorf("%s has a label %s, which package series does not say", sample.Metric, name)
				}
			}
			// Who has no team has no label of that name.
			if len(sample.Metric) != len(want) && s.Name != series.SLOTeam {
				l.t.Errorf("%s lacks one of the labels %q", sample.Metric, s.Labels)
			}
		}
	}
}

// clean looks for what rules may do wrong without an alert.
func (l live) clean(dir string) {
	l.t.Helper()
	if _, err := l.Evaluated(l.t.Context()); err != nil {
		l.t.Error(err)
	}
	log, err := os.ReadFile(process.LogPath(dir, build.Prometheus))
	if err != nil {
		l.t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "component=\"rule manager\"") &&
			(strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN")) {
			l.t.Errorf("Prometheus says: %s", line)
		}
	}
}
