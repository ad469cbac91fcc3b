// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// page is one kind of page.
type page struct {
	// pattern is the path, as in http.ServeMux.
	pattern string
	// name is its name in the navigation; empty for pages about one object.
	name     string
	template string
	// read returns what the template shows.
	read func(ctx context.Context, from *reader, r *http.Request) (any, error)
}

var pages = []page{
	{pattern: "/{$}", name: "Fleet", template: "fleet.html", read: readFleet},
	{pattern: "/operators", name: "Operators", template: "operators.html", read: readOperators},
	{pattern: "/rollouts", name: "Rollouts", template: "rollouts.html", read: readRollouts},
	{pattern: "/waiting", name: "Waiting for you", template: "waiting.html", read: readWaiting},
	{pattern: "/decisions", name: "Decisions", template: "decisions.html", read: readDecisions},
	{pattern: "/clusters/{cluster}", template: "cluster.html", read: readCluster},
	{pattern: "/operators/{namespace}/{operator}", template: "operator.html", read: readOperator},
	{pattern: "/rollouts/{namespace}/{rollout}", template: "rollout.html", read: readRollout},
}

func listTemplates() []string {
	var names []string
	for _, p := range pages {
		names = append(names, p.template)
	}
	return names
}

// listLinks returns the navigation on a page. The time that was asked for is kept.
func listLinks(current, at string) []link {
	var links []link
	for _, p := range pages {
		path := strings.TrimSuffix(p.pattern, "{$}")
		if p.name != "" {
			links = append(links, link{p.name, addTime(path, at), path == current})
		}
	}
	return links
}

// addTime adds the time that was asked for to an address of the console.
func addTime(address, at string) string {
	if at == "" {
		return address
	}
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	return address + separator + "at=" + url.QueryEscape(at)
}

// buildTitle returns the title of a page: the names in its path, or its name.
func (p page) buildTitle(r *http.Request) string {
	if p.name != "" {
		return p.name
	}
	_, rest, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	return rest
}

// functions are what templates may call.
var functions = template.FuncMap{
	"withTime": addTime,
	"pair":     func(first, second any) pair { return pair{first, second} },
	"spaced":   func(t string) string { return strings.TrimSuffix(strings.Replace(t, "T", " ", 1), "Z") },
	"instant":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"ready":    classOf,
	"rollout": func(phase string) string {
		return strings.ToLower(string(conditions.RolloutSeverity(v1alpha1.RolloutPhase(phase))))
	},
	"wave": func(phase string) string {
		return strings.ToLower(string(conditions.WaveSeverity(v1alpha1.WavePhase(phase))))
	},
	"verdict": func(verdict string) string {
		switch v1alpha1.GateVerdict(verdict) {
		case v1alpha1.GatePassed:
			return "good"
		case v1alpha1.GateFailed:
			return "bad"
		case v1alpha1.GateOverridden:
			return "warning"
		default:
			return "neutral"
		}
	},
}

// pair is what a template passes to another one.
type pair struct{ First, Second any }

// classOf returns the class of a condition Ready: how bad it is.
func classOf(status, reason string) string {
	return strings.ToLower(string(conditions.ConditionSeverity(metav1.Condition{Type: v1alpha1.ConditionReady,
		Status: metav1.ConditionStatus(status), Reason: reason})))
}

// pageSize is how many clusters, rollouts or decisions a page shows.
const pageSize = 100

// fleetContent is the heat map: a line for each cluster, with a cell for each operator.
type fleetContent struct {
	Clusters  row
	Operators []row
	Lines     []fleetLine
	// Filter are the fields of the form, and Next is the address of the next page; empty if this is the last one.
	Filter fleetFilter
	Next   string
}

type fleetFilter struct{ Name, Label, State, After string }

type fleetLine struct {
	Cluster row
	// Cells are in the order of the operators; nil where an operator is not installed.
	Cells []row
}

// readFleet reads the clusters that a filter selects, after the last one of the page before.
func readFleet(ctx context.Context, from *reader, r *http.Request) (any, error) {
	q := r.URL.Query()
	c := fleetContent{Filter: fleetFilter{q.Get("name"), q.Get("label"), q.Get("state"), q.Get("after")}}
	counts, err := from.read(ctx, `SELECT count(*) AS total, count(stale_since) AS stale,
		ifnull(sum(paused), 0) AS paused, count(freeze) AS frozen, count(veto) AS vetoed FROM clusters`, nil)
	if err != nil {
		return nil, err
	}
	c.Clusters = counts[0]
	if c.Operators, err = from.read(ctx, `SELECT * FROM operators ORDER BY namespace, operator`, nil); err != nil {
		return nil, err
	}
	lines, err := c.readClusters(ctx, from)
	if err != nil || len(lines) == 0 {
		return c, err
	}
	if len(lines) > pageSize {
		lines = lines[:pageSize]
		q.Set("after", lines[pageSize-1].Text("cluster"))
		c.Next = "/?" + q.Encode()
	}
	var names []string
	for _, line := range lines {
		names = append(names, line.Text("cluster"))
	}
	list, err := json.Marshal(names)
	if err != nil {
		return nil, fmt.Errorf("encode names: %w", err)
	}
	cells, err := from.read(ctx, `SELECT * FROM installs WHERE cluster IN (SELECT value FROM json_each(:clusters))`,
		map[string]string{"clusters": string(list)})
	if err != nil {
		return nil, err
	}
	at := map[[3]string]row{}
	for _, cell := range cells {
		at[[3]string{cell.Text("cluster"), cell.Text("namespace"), cell.Text("operator")}] = cell
	}
	for _, cluster := range lines {
		line := fleetLine{Cluster: cluster}
		for _, o := range c.Operators {
			key := [3]string{cluster.Text("cluster"), o.Text("namespace"), o.Text("operator")}
			line.Cells = append(line.Cells, at[key])
		}
		c.Lines = append(c.Lines, line)
	}
	return c, nil
}

// states are the filters by state, with the condition of SQL of each.
var states = map[string]string{
	"":          "true",
	"stale":     "stale_since IS NOT NULL",
	"not-ready": "cluster IN (SELECT cluster FROM installs WHERE ready IS NOT 'True')",
	"held":      "(paused = 1 OR freeze IS NOT NULL OR veto IS NOT NULL)",
}

// readClusters reads one cluster more than the page shows. A user who sees no cluster sees those that operators are on.
func (c *fleetContent) readClusters(ctx context.Context, from *reader) ([]row, error) {
	condition, ok := states[c.Filter.State]
	if !ok {
		return nil, fmt.Errorf("%w: there is no state %q", errNotFound, c.Filter.State)
	}
	key, value, _ := strings.Cut(c.Filter.Label, "=")
	arguments := map[string]string{"name": c.Filter.Name, "after": c.Filter.After, "key": strings.TrimSpace(key),
		"value": strings.TrimSpace(value), "limit": strconv.Itoa(pageSize + 1)}
	lines, err := from.read(ctx, `SELECT * FROM clusters
		WHERE cluster > :after AND cluster LIKE '%' || :name || '%' AND (:key = '' OR labels ->> :key = :value)
			AND `+condition+`
		ORDER BY cluster LIMIT CAST(:limit AS INTEGER)`, arguments)
	if err != nil || len(lines) > 0 || c.Clusters["total"] != nil && c.Clusters.Text("total") != "0" {
		return lines, err
	}
	delete(arguments, "key")
	delete(arguments, "value")
	return from.read(ctx, `SELECT DISTINCT cluster, NULL AS stale_since, NULL AS online, NULL AS reason, NULL AS paused,
			NULL AS freeze, NULL AS veto, NULL AS kubernetes, '{}' AS labels
		FROM installs WHERE cluster > :after AND cluster LIKE '%' || :name || '%'
		ORDER BY cluster LIMIT CAST(:limit AS INTEGER)`, arguments)
}

// readOperators reads all operators.
func readOperators(ctx context.Context, from *reader, _ *http.Request) (any, error) {
	return from.read(ctx, `SELECT * FROM operators ORDER BY namespace, operator`, nil)
}

type operatorContent struct {
	Operator                                row
	Installed, Versions, Rollouts, NotReady []row
	Decisions                               []row
}

// readOperator reads one operator: what runs where, what is in its catalog, its rollouts and decisions.
func readOperator(ctx context.Context, from *reader, r *http.Request) (any, error) {
	arguments := map[string]string{"namespace": r.PathValue("namespace"), "operator": r.PathValue("operator")}
	var c operatorContent
	found, err := from.read(ctx, `SELECT * FROM operators
		WHERE namespace = :namespace AND operator = :operator`, arguments)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: you see no operator %s/%s at this time", errNotFound, arguments["namespace"],
			arguments["operator"])
	}
	c.Operator = found[0]
	for _, part := range []struct {
		into *[]row
		sql  string
	}{
		{&c.Installed, `SELECT version, count(*) AS clusters, sum(ready = 'True') AS ready FROM installs
			WHERE namespace = :namespace AND operator = :operator GROUP BY version ORDER BY clusters DESC, version`},
		{&c.Versions, `SELECT v.* FROM versions v
			JOIN operators o ON o.namespace = v.namespace AND o.catalog = v.catalog AND o.package = v.package
			WHERE o.namespace = :namespace AND o.operator = :operator ORDER BY v.valid_from DESC`},
		{&c.Rollouts, `SELECT * FROM rollouts WHERE namespace = :namespace AND operator = :operator
			ORDER BY revision DESC LIMIT 20`},
		{&c.NotReady, `SELECT * FROM installs
			WHERE namespace = :namespace AND operator = :operator AND ready IS NOT 'True'
			ORDER BY valid_from LIMIT 100`},
		{&c.Decisions, `SELECT * FROM decisions WHERE namespace = :namespace AND operator = :operator
			ORDER BY at DESC LIMIT 20`},
	} {
		if *part.into, err = from.read(ctx, part.sql, arguments); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// readRollouts reads the newest rollouts, those under way first.
func readRollouts(ctx context.Context, from *reader, _ *http.Request) (any, error) {
	return from.read(ctx, fmt.Sprintf(`SELECT * FROM rollouts
		ORDER BY ended_at IS NOT NULL, started_at DESC, namespace, rollout LIMIT %d`, pageSize), nil)
}

type rolloutContent struct {
	Rollout row
	Waves   []waveContent
	Steps   []row
}

type waveContent struct {
	Wave            row
	Gates, Clusters []row
}

// readRollout reads one rollout with its waves, their gates and clusters, and what happened.
func readRollout(ctx context.Context, from *reader, r *http.Request) (any, error) {
	arguments := map[string]string{"namespace": r.PathValue("namespace"), "rollout": r.PathValue("rollout")}
	found, err := from.read(ctx, `SELECT * FROM rollouts
		WHERE namespace = :namespace AND rollout = :rollout`, arguments)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: you see no rollout %s/%s at this time", errNotFound, arguments["namespace"],
			arguments["rollout"])
	}
	c := rolloutContent{Rollout: found[0]}
	var waves, gates, clusters []row
	for _, part := range []struct {
		into *[]row
		sql  string
	}{
		{&waves, `SELECT * FROM waves WHERE namespace = :namespace AND rollout = :rollout ORDER BY position`},
		{&gates, `SELECT * FROM gates WHERE namespace = :namespace AND rollout = :rollout ORDER BY gate`},
		{&clusters, `SELECT i.* FROM rollouts r JOIN installs i ON i.namespace = r.namespace AND i.operator = r.operator
			WHERE r.namespace = :namespace AND r.rollout = :rollout AND i.rollout = :rollout
			ORDER BY i.cluster LIMIT 1000`},
		{&c.Steps, `SELECT valid_from AS at, '' AS wave, phase, message FROM rollouts_history
			WHERE namespace = :namespace AND rollout = :rollout
			UNION ALL SELECT valid_from, wave, phase, '' FROM waves_history
			WHERE namespace = :namespace AND rollout = :rollout ORDER BY at DESC, wave LIMIT 200`},
	} {
		if *part.into, err = from.read(ctx, part.sql, arguments); err != nil {
			return nil, err
		}
	}
	for _, wave := range waves {
		isOfWave := func(one row) bool { return one.Text("wave") == wave.Text("wave") }
		c.Waves = append(c.Waves, waveContent{wave, selectRows(gates, isOfWave), selectRows(clusters, isOfWave)})
	}
	return c, nil
}

// selectRows returns the rows that meet a condition.
func selectRows(all []row, meets func(row) bool) []row {
	return slices.DeleteFunc(slices.Clone(all), func(one row) bool { return !meets(one) })
}

type clusterContent struct {
	Name              string
	Cluster           row
	Installs, Changes []row
}

// readCluster reads one cluster with its operators, and what changed lately.
func readCluster(ctx context.Context, from *reader, r *http.Request) (any, error) {
	c := clusterContent{Name: r.PathValue("cluster")}
	arguments := map[string]string{"cluster": c.Name}
	found, err := from.read(ctx, `SELECT * FROM clusters WHERE cluster = :cluster`, arguments)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		c.Cluster = found[0]
	}
	if c.Installs, err = from.read(ctx, `SELECT i.*, d.message AS drift FROM installs i LEFT JOIN drift d
		ON d.namespace = i.namespace AND d.operator = i.operator AND d.cluster = i.cluster
		WHERE i.cluster = :cluster ORDER BY i.namespace, i.operator`, arguments); err != nil {
		return nil, err
	}
	if len(found) == 0 && len(c.Installs) == 0 {
		return nil, fmt.Errorf("%w: you see no cluster %s at this time", errNotFound, c.Name)
	}
	c.Changes, err = from.read(ctx, `SELECT valid_from AS at, namespace, operator, version, ready, reason, message
		FROM installs_history WHERE cluster = :cluster ORDER BY at DESC, namespace, operator LIMIT 100`, arguments)
	return c, err
}

type waitingContent struct{ Gates, Versions, Paused, Halted, Vetoes []row }

// readWaiting reads what waits for a person.
func readWaiting(ctx context.Context, from *reader, _ *http.Request) (any, error) {
	var c waitingContent
	for _, part := range []struct {
		into *[]row
		sql  string
	}{
		{&c.Gates, `SELECT g.*, r.operator, r.version FROM gates g
			JOIN rollouts r ON r.namespace = g.namespace AND r.rollout = g.rollout
			JOIN waves w ON w.namespace = g.namespace AND w.rollout = g.rollout AND w.wave = g.wave
			WHERE r.ended_at IS NULL AND (g.approval = 1 AND g.verdict = 'Waiting' AND w.phase = 'Gated'
				OR g.verdict = 'Failed') ORDER BY g.valid_from`},
		{&c.Versions, `SELECT * FROM operators WHERE waiting_version IS NOT NULL ORDER BY namespace, operator`},
		{&c.Halted, `SELECT * FROM rollouts WHERE phase = 'Halted' ORDER BY valid_from`},
		{&c.Paused, `SELECT * FROM rollouts WHERE paused = 1 AND ended_at IS NULL ORDER BY valid_from`},
		{&c.Vetoes, `SELECT * FROM clusters WHERE veto IS NOT NULL OR freeze IS NOT NULL ORDER BY cluster LIMIT 100`},
	} {
		var err error
		if *part.into, err = from.read(ctx, part.sql, nil); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// readDecisions reads the newest decisions.
func readDecisions(ctx context.Context, from *reader, _ *http.Request) (any, error) {
	return from.read(ctx, fmt.Sprintf(`SELECT * FROM decisions
		ORDER BY at DESC, namespace, operator LIMIT %d`, pageSize), nil)
}
