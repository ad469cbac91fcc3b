// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/alerts/incidents"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/explain/handover"
)

var update = flag.Bool("update", false, "write the golden files")

var morning = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return morning.Add(-d) }

func metaAgo(d time.Duration) *metav1.Time { return &metav1.Time{Time: ago(d)} }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); run with -update if it should:\n%s", path, diff)
	}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string,
	since time.Duration) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message,
		LastTransitionTime: *metaAgo(since)}
}

func cluster(name string, online time.Duration) v1alpha1.FleetCluster {
	return v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"cluster": name}},
		Status: v1alpha1.FleetClusterStatus{Namespace: "bellwether-" + name, Conditions: []metav1.Condition{
			condition(v1alpha1.ConditionOnline, metav1.ConditionTrue, v1alpha1.ReasonLeaseFresh,
				"the agent renews its Lease", online),
			condition(v1alpha1.ConditionAPIServerReachable, metav1.ConditionTrue, v1alpha1.ReasonAPIServerReachable,
				"the agent reaches the API server of its cluster", online),
			condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "the agent reports",
				online),
		}}}
}

func offline(name string, since time.Duration) v1alpha1.FleetCluster {
	c := cluster(name, since)
	c.Status.Conditions[0] = condition(v1alpha1.ConditionOnline, metav1.ConditionFalse, v1alpha1.ReasonLeaseExpired,
		"the agent renewed its Lease last at "+ago(since).Format("15:04:05"), since)
	return c
}

func rollout(name string, revision int64, version string, phase v1alpha1.RolloutPhase,
	message string) v1alpha1.OperatorRollout {
	reason, ready := string(phase), metav1.ConditionFalse
	if phase == v1alpha1.RolloutSucceeded {
		ready = metav1.ConditionTrue
	}
	return v1alpha1.OperatorRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: types.UID(name),
			CreationTimestamp: *metaAgo(10 * time.Hour)},
		Spec: v1alpha1.OperatorRolloutSpec{Operator: v1alpha1.LocalReference{Name: "echo"}, Revision: revision,
			Release: v1alpha1.Release{Package: "echo-operator", Version: version},
			Strategy: v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{{Name: "canary"}, {Name: "rest",
				Gates: []v1alpha1.Gate{{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}}}}}},
		Status: v1alpha1.OperatorRolloutStatus{Phase: phase, Message: message, StartedAt: metaAgo(9 * time.Hour),
			Conditions: []metav1.Condition{condition(v1alpha1.ConditionReady, ready, reason, message, 2*time.Hour)}},
	}
}

func operator(name string) v1alpha1.ManagedOperator {
	return v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name},
		Spec: v1alpha1.ManagedOperatorSpec{Package: name + "-operator"}}
}

// quiet is a shift in which nothing happened, of a fleet without trouble.
func quiet() handover.Input {
	done := rollout("echo-1", 1, "1.0.0", v1alpha1.RolloutSucceeded, "2 of 2 clusters updated")
	done.CreationTimestamp, done.Status.StartedAt, done.Status.EndedAt = *metaAgo(90 * time.Hour),
		metaAgo(90*time.Hour), metaAgo(80*time.Hour)
	return handover.Input{
		From: ago(12 * time.Hour), To: morning, Now: morning, Zone: time.UTC, Most: 20,
		Operators: handover.Read[v1alpha1.ManagedOperator]{Items: []v1alpha1.ManagedOperator{operator("echo")}},
		Rollouts:  handover.Read[v1alpha1.OperatorRollout]{Items: []v1alpha1.OperatorRollout{done}},
		Clusters: handover.Read[v1alpha1.FleetCluster]{Items: []v1alpha1.FleetCluster{cluster("prod-1", 90*time.Hour),
			cluster("prod-2", 90*time.Hour)}},
	}
}

func incident(severity string, labels map[string]string, began, lasted time.Duration) incidents.Incident {
	i := incidents.Incident{Name: slo.AlertOperator, Labels: labels, Severity: severity, Began: ago(began), Pages: 1}
	if severity == "ticket" {
		i.Pages, i.Tickets = 0, 1
	}
	if lasted == 0 {
		i.Firing = severity
		return i
	}
	end := i.Began.Add(lasted)
	i.Ended = &end
	return i
}

func ofEcho(cluster string) map[string]string {
	return map[string]string{"scope": "operator", "operator_namespace": "fleet", "operator": "echo", "sli": "available",
		"cluster": cluster}
}

func part(of float64) *float64 { return &of }

// badRelease is a shift with a release that failed and was rolled back, and more.
func badRelease() handover.Input {
	in := quiet()
	bad := rollout("echo-2", 2, "1.1.0", v1alpha1.RolloutRolledBack, "rolled back: gate slo of wave canary failed; "+
		"rollout echo-3 takes 1 cluster back")
	bad.Status.EndedAt = metaAgo(4 * time.Hour)
	back := rollout("echo-3", 3, "1.0.0", v1alpha1.RolloutProgressing, "wave canary: 0 of 1 cluster updated")
	back.CreationTimestamp, back.Status.StartedAt = *metaAgo(4 * time.Hour), metaAgo(4*time.Hour)
	back.Spec.Rollback = &v1alpha1.RolloutRollback{Of: "echo-2", UID: "echo-2", Version: "1.1.0",
		Reason: "gate slo failed", Automatic: true}
	gated := rollout("backup-2", 2, "2.0.0", v1alpha1.RolloutProgressing,
		"wave rest waits for the approval of gate sre")
	gated.Spec.Operator.Name = "backup"
	gated.Status.Conditions[0].Reason = v1alpha1.ReasonGated
	gated.Status.Waves = []v1alpha1.WaveStatus{{Name: "rest", Phase: v1alpha1.WaveGated,
		WaveCounts: v1alpha1.WaveCounts{Total: 1, Pending: 1}, Gates: []v1alpha1.GateStatus{{Name: "sre",
			Verdict: v1alpha1.GateWaiting, WaitingSince: metaAgo(3 * time.Hour)}}}}
	in.Rollouts.Items = append(in.Rollouts.Items, bad, back, gated)
	in.Members = map[types.UID][]v1alpha1.OperatorInstall{"echo-3": nil, "backup-2": nil}

	echo, backup := operator("echo"), operator("backup")
	echo.Spec.Holds = []v1alpha1.VersionHold{{Version: "1.1.0", Rollout: "echo-2",
		Reason: "rolled back: gate slo failed", Since: *metaAgo(4 * time.Hour)}}
	echo.Status.Decisions = &v1alpha1.DecisionLog{Dropped: 3, Entries: []v1alpha1.Decision{
		{At: *metaAgo(4 * time.Hour), By: "hub", What: v1alpha1.DecisionRollbackStarted, Rollout: "echo-3",
			On: "version 1.1.0, brought by echo-2", Reason: "gate slo failed"},
		{At: *metaAgo(9 * time.Hour), By: "anna", What: v1alpha1.DecisionApproved, Rollout: "echo-2",
			On: "gate sre of wave rest", Reason: "looks *good* <b>to</b> me"},
	}}
	in.Operators.Items = []v1alpha1.ManagedOperator{echo, backup}

	vetoed := cluster("prod-1", 90*time.Hour)
	vetoed.Status.Veto = &v1alpha1.ClusterVeto{Reason: "quarter end", Since: *metaAgo(20 * time.Hour)}
	back2 := cluster("prod-4", 3*time.Hour)
	back2.Status.VetoEndedAt = metaAgo(2 * time.Hour)
	in.Clusters.Items = []v1alpha1.FleetCluster{vetoed, cluster("prod-2", 90*time.Hour), offline("prod-3", time.Hour),
		back2}
	in.Windows.Items = []v1alpha1.ChangeWindow{{ObjectMeta: metav1.ObjectMeta{Name: "freeze"},
		Spec: v1alpha1.ChangeWindowSpec{Type: v1alpha1.WindowDeny, Reason: "year-end freeze", TimeZone: "UTC",
			Start: "2026-11-20T00:00:00", Duration: metav1.Duration{Duration: 72 * time.Hour}}}}

	release := incident("page", map[string]string{"scope": "release", "operator_namespace": "fleet", "operator": "echo",
		"sli": "available", "version": "1.1.0"}, 5*time.Hour, 90*time.Minute)
	release.Name, release.Pages, release.Tickets = slo.AlertRelease, 2, 1
	open := incident("page", ofEcho("prod-2"), 30*time.Minute, 0)
	open.Summary = "fleet/echo burns its available budget 14.4 times too fast on cluster prod-2"
	open.Runbook = "https://runbooks.example.com/slo#available"
	old := incident("ticket", ofEcho("prod-1"), 30*time.Hour, 0)
	old.Tickets, old.EarlierStart = 3, true
	hub := incident("page", map[string]string{"scope": "fleet"}, 7*time.Hour, 10*time.Minute)
	hub.Name = slo.AlertHubDown
	in.Incidents.Items = []incidents.Incident{open, old, release, hub}
	in.Gaps = []incidents.Gap{{From: ago(11 * time.Hour), To: ago(10 * time.Hour)}}
	in.Low.Items = []budgets.Spending{
		{Namespace: "fleet", Operator: "echo", SLI: "available", Cluster: "prod-2", Clusters: 3, Left: part(-0.41),
			LeftExcluding: part(0.12)},
		{Namespace: "fleet", Operator: "backup", SLI: "probe:web", Cluster: "prod-1", Clusters: 1, Left: part(0.004),
			LeftExcluding: part(0.004)}}
	in.Lost.Items = []budgets.Spending{{Namespace: "fleet", Operator: "echo", SLI: "available", Cluster: "prod-2",
		Clusters: 4, Left: part(-0.41), LeftExcluding: part(0.12), Lost: part(1.204)}}

	equal := func(name, value string) handover.Matcher { return handover.Matcher{Name: name, Value: value} }
	in.Silences.Items = []handover.Silence{
		{ID: "a", By: "anna", Comment: "disk of prod-1 is replaced", Starts: ago(2 * time.Hour),
			Ends: ago(-6 * time.Hour), Matchers: []handover.Matcher{equal("cluster", "prod-1")}},
		{ID: "b", By: "ben", Comment: "known | flaky", Starts: ago(8 * time.Hour), Ends: ago(7 * time.Hour),
			Matchers: []handover.Matcher{{Name: "alertname", Value: "Bellwether.*", Regex: true}}},
		{ID: "c", By: "cleo", Starts: ago(-time.Hour), Ends: ago(-3 * time.Hour), Comment: "upgrade of the network",
			Matchers: []handover.Matcher{{Name: "cluster", Value: "prod-3", Negated: true}}},
		{ID: "d", By: "dan", Comment: "of another team", Starts: ago(2 * time.Hour), Ends: ago(-6 * time.Hour),
			Matchers: []handover.Matcher{equal("alertname", "NodeDiskFull")}},
		{ID: "e", By: "eve", Comment: "before the shift", Starts: ago(20 * time.Hour), Ends: ago(14 * time.Hour),
			Matchers: []handover.Matcher{equal("cluster", "prod-1")}},
	}
	external := ofEcho("prod-1")
	external["alertname"], external["prometheus"] = slo.AlertOperator, "monitoring/k8s"
	in.Alerts.Items = []handover.Alert{{Labels: external, SilencedBy: []string{"a"}}}
	return in
}

// unreachable is a report of which nothing could be read.
func unreachable() handover.Input {
	in := quiet()
	const hub = "cannot reach the hub: connection refused; check --kubeconfig and --context"
	const prometheus = "no Prometheus address: set --prometheus or BELLWETHER_PROMETHEUS"
	const alertmanager = "read the silences of Alertmanager at http://localhost:9093: connection refused"
	in.Operators, in.Rollouts = handover.Read[v1alpha1.ManagedOperator]{Unknown: hub},
		handover.Read[v1alpha1.OperatorRollout]{Unknown: hub}
	in.Clusters.Items, in.Clusters.Unknown, in.Windows.Unknown, in.Policies.Unknown = nil, hub, hub, hub
	in.Incidents.Unknown, in.Low.Unknown, in.Lost.Unknown = prometheus, prometheus, prometheus
	in.Silences.Unknown, in.Alerts.Unknown = alertmanager, alertmanager
	return in
}

// flood has more of everything than a list shows.
func flood() handover.Input {
	in := quiet()
	in.Most = 3
	in.Clusters.Items, in.Low.Items = nil, nil
	for i := range 200 {
		name := fmt.Sprintf("prod-%03d", i)
		lasted := time.Duration(0)
		if i >= 100 {
			lasted = time.Hour
		}
		in.Incidents.Items = append(in.Incidents.Items, incident([]string{"ticket", "page"}[i%2], ofEcho(name),
			2*time.Hour, lasted))
		in.Clusters.Items = append(in.Clusters.Items, offline(name, time.Duration(i+1)*time.Minute))
		in.Low.Items = append(in.Low.Items, budgets.Spending{Namespace: "fleet", Operator: name, SLI: "available",
			Cluster: "prod-1", Clusters: 1, Left: part(0)})
		in.Silences.Items = append(in.Silences.Items, handover.Silence{ID: name, By: "anna", Comment: "upgrade",
			Starts: ago(time.Hour), Ends: ago(-time.Hour),
			Matchers: []handover.Matcher{{Name: "cluster", Value: name}}})
		in.Alerts.Items = append(in.Alerts.Items, handover.Alert{Labels: map[string]string{
			"alertname": slo.AlertCluster, "cluster": name}, SilencedBy: []string{"prod-000"}})
	}
	return in
}

// zoned is the night in which the clocks of Berlin are set back.
func zoned(t *testing.T) handover.Input {
	t.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	in := quiet()
	in.Zone = berlin
	in.From = time.Date(2026, 10, 24, 20, 0, 0, 0, berlin)
	in.To = time.Date(2026, 10, 25, 8, 0, 0, 0, berlin)
	in.Now = in.To.Add(30 * time.Minute)
	end := time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC) // 02:30 for the second time
	i := incident("page", ofEcho("prod-1"), 0, time.Hour)
	i.Began, i.Ended = end.Add(-time.Hour), &end
	in.Clusters.Items[1].Status.Conditions[0] = condition(v1alpha1.ConditionOnline, metav1.ConditionFalse,
		v1alpha1.ReasonLeaseExpired, "the agent renewed its Lease last at 2026-10-25T00:30:00Z", 0)
	in.Incidents.Items = []incidents.Incident{i}
	in.Silences.Items = []handover.Silence{{By: "anna", Comment: "the window is open until 2026-10-25T09:00:00Z",
		Starts: end, Ends: in.Now.Add(time.Hour), Matchers: []handover.Matcher{
			{Name: "alertname", Value: "Bellwether.*", Regex: true},
			{Name: "opened", Value: " 2026-10-25T00:00:30Z "}}}}
	return in
}

func TestMarkdown(t *testing.T) {
	broken := badRelease()
	broken.Clusters = handover.Read[v1alpha1.FleetCluster]{Unknown: "list clusters: forbidden"}
	broken.Alerts = handover.Read[handover.Alert]{Unknown: "read the alerts of Alertmanager: no answer within 30s"}
	broken.Namespace = "fleet"
	broken.Gaps = []incidents.Gap{{From: ago(time.Hour), To: morning}}
	for name, in := range map[string]handover.Input{"quiet": quiet(), "bad-release": badRelease(),
		"unreachable": unreachable(), "flood": flood(), "midnight": zoned(t), "in-part": broken} {
		t.Run(name, func(t *testing.T) { golden(t, name+".md", handover.New(in).Markdown(0)) })
	}
}

// TestWidth checks that wrapped lines are not too long, that the Markdown has the same meaning, and that all times
// have the report's zone. Text that people copy must not change.
func TestWidth(t *testing.T) {
	const most = 120
	for name, in := range map[string]handover.Input{"bad-release": badRelease(), "flood": flood(),
		"midnight": zoned(t), "unreachable": unreachable()} {
		report := handover.New(in)
		broken, whole := report.Markdown(most), report.Markdown(0)
		for line := range strings.Lines(broken) {
			if columns := len([]rune(line)) - 1; columns > most {
				t.Errorf("%s has a line of %d columns: %s", name, columns, line)
			}
		}
		if diff := cmp.Diff(strings.Fields(whole), strings.Fields(broken)); diff != "" {
			t.Errorf("%s has another text (-whole +broken):\n%s", name, diff)
		}
		if name == "midnight" && strings.Contains(whole, ":00Z") {
			t.Errorf("%s has times of two zones:\n%s", name, whole)
		}
		if name == "midnight" && !strings.Contains(whole, `opened=" 2026-10-25T00:00:30Z "`) {
			t.Errorf("%s has another matcher:\n%s", name, whole)
		}
	}
}

func TestData(t *testing.T) {
	for name, in := range map[string]handover.Input{"bad-release": badRelease(), "unreachable": unreachable()} {
		t.Run(name, func(t *testing.T) {
			text, err := json.MarshalIndent(handover.New(in), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".json", string(text)+"\n")
		})
	}
}

// sample is the shift of the guide.
func sample() handover.Input {
	in, all := quiet(), badRelease()
	back := rollout("echo-3", 3, "1.0.0", v1alpha1.RolloutSucceeded, "1 of 1 cluster updated")
	back.Spec.Rollback = all.Rollouts.Items[2].Spec.Rollback
	back.Status.StartedAt, back.Status.EndedAt = metaAgo(4*time.Hour), metaAgo(3*time.Hour+50*time.Minute)
	in.Rollouts.Items = append(in.Rollouts.Items, all.Rollouts.Items[1], back)
	in.Operators.Items = all.Operators.Items[:1]
	in.Operators.Items[0].Status.Decisions = &v1alpha1.DecisionLog{
		Entries: all.Operators.Items[0].Status.Decisions.Entries[:1]}
	in.Incidents.Items = []incidents.Incident{all.Incidents.Items[0], all.Incidents.Items[2]}
	in.Silences.Items = all.Silences.Items[:1]
	in.Alerts = all.Alerts
	return in
}

func TestTheGuideHasAReport(t *testing.T) {
	const guide, begin, end = "../../docs/guides/oncall.md", "```markdown\n", "```\n"
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	got, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no report", guide)
	}
	want := handover.New(sample()).Markdown(0)
	if *update {
		if err := os.WriteFile(guide, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the report in %s differs (-want +got); run with -update:\n%s", guide, diff)
	}
}

// TestUnknownIsNeverNothing removes one source after the other. Each list that depends on the source must report that,
// as data and as text.
func TestUnknownIsNeverNothing(t *testing.T) {
	const why = "the reason of this test"
	for name, test := range map[string]struct {
		damage func(*handover.Input)
		want   []string
	}{
		"operators": {func(in *handover.Input) { in.Operators = handover.Read[v1alpha1.ManagedOperator]{Unknown: why} },
			[]string{"Held versions and settings", "Decisions", "Closed change windows"}},
		"rollouts": {func(in *handover.Input) { in.Rollouts = handover.Read[v1alpha1.OperatorRollout]{Unknown: why} },
			[]string{"Rollouts", "Rollouts that started or ended"}},
		"clusters": {func(in *handover.Input) { in.Clusters = handover.Read[v1alpha1.FleetCluster]{Unknown: why} },
			[]string{"Vetoes and freezes", "Offline clusters", "Clusters that came back", "Closed change windows"}},
		"windows":   {func(in *handover.Input) { in.Windows.Unknown = why }, []string{"Closed change windows"}},
		"policies":  {func(in *handover.Input) { in.Policies.Unknown = why }, []string{"Closed change windows"}},
		"incidents": {func(in *handover.Input) { in.Incidents.Unknown = why }, []string{"Firing alerts", "Alerts that ended"}},
		"low":       {func(in *handover.Input) { in.Low.Unknown = why }, []string{"Low error budgets"}},
		"lost":      {func(in *handover.Input) { in.Lost.Unknown = why }, []string{"Error budgets that lost the most"}},
		"silences": {func(in *handover.Input) { in.Silences.Unknown = why },
			[]string{"Silences", "Silences that ended"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := quiet()
			test.damage(&in)
			got := handover.New(in).Markdown(0)
			for _, title := range test.want {
				if !strings.Contains(got, "### "+title+"\n\n**Not known:** "+why+".\n") {
					t.Errorf("%s is not said to be unknown:\n%s", title, got)
				}
			}
			if n := strings.Count(got, "**Not known:**"); n != len(test.want) {
				t.Errorf("%d sections are unknown, want %d:\n%s", n, len(test.want), got)
			}
		})
	}
}

// TestSilencesOfOthers has silences that may hide an alert of Bellwether, and others.
func TestSilencesOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		matcher   handover.Matcher
		namespace string
		want      int
	}{
		"a cluster":                  {handover.Matcher{Name: "cluster", Value: "prod-1"}, "", 1},
		"one of ours":                {handover.Matcher{Name: "alertname", Value: slo.AlertHubDown}, "", 1},
		"some of ours":               {handover.Matcher{Name: "alertname", Value: ".*SLOBurn", Regex: true}, "", 1},
		"part of a name":             {handover.Matcher{Name: "alertname", Value: "Bellwether", Regex: true}, "", 0},
		"of others":                  {handover.Matcher{Name: "alertname", Value: "Node.*", Regex: true}, "", 0},
		"all but one":                {handover.Matcher{Name: "alertname", Value: "NodeDown", Negated: true}, "", 1},
		"all but ours":               {handover.Matcher{Name: "alertname", Value: "Bell.*", Regex: true, Negated: true}, "", 0},
		"not an expression":          {handover.Matcher{Name: "alertname", Value: "(", Regex: true}, "", 1},
		"an operator elsewhere":      {handover.Matcher{Name: "operator_namespace", Value: "other"}, "fleet", 0},
		"an operator somewhere":      {handover.Matcher{Name: "operator_namespace", Value: "other"}, "", 1},
		"an operator of ours":        {handover.Matcher{Name: "operator_namespace", Value: "fleet"}, "fleet", 1},
		"what is about no operator":  {handover.Matcher{Name: "operator_namespace", Value: ""}, "fleet", 1},
		"whatever has some operator": {handover.Matcher{Name: "operator_namespace", Value: ".+", Regex: true}, "fleet", 1},
	} {
		t.Run(name, func(t *testing.T) {
			in := quiet()
			in.Namespace = test.namespace
			in.Silences.Items = []handover.Silence{{ID: "a", Starts: ago(time.Hour), Ends: ago(-time.Hour),
				Matchers: []handover.Matcher{test.matcher}}}
			list := handover.New(in).Open.Silences
			if *list.Total != test.want || len(list.Notes) != 1-test.want {
				t.Errorf("%d silences and the notes %q, want %d", *list.Total, list.Notes, test.want)
			}
		})
	}
}
