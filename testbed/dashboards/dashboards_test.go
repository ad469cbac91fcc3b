// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
)

// What Grafana's classic model has that is of interest here.
type (
	page struct {
		Title      string  `json:"title"`
		Panels     []panel `json:"panels"`
		Templating struct {
			List []variable `json:"list"`
		} `json:"templating"`
		Annotations struct {
			List []struct {
				Name string `json:"name"`
				Expr string `json:"expr"`
			} `json:"list"`
		} `json:"annotations"`
	}
	panel struct {
		Title   string  `json:"title"`
		Panels  []panel `json:"panels"`
		Targets []struct {
			Expr    string `json:"expr"`
			Instant bool   `json:"instant"`
		} `json:"targets"`
	}
	variable struct {
		Name       string `json:"name"`
		Type       string `json:"type"`
		Definition string `json:"definition"`
		AllValue   string `json:"allValue"`
	}
)

// query is PromQL of a dashboard.
type query struct {
	where, promql string
	instant       bool
}

// pages reads the dashboards as they are shipped.
func pages(t *testing.T) map[string]page {
	t.Helper()
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "dashboards", "out", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards (%v)", err)
	}
	out := map[string]page{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var p page
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".json")] = p
	}
	return out
}

// queries are those of panels and annotations. The text of variables stays in.
func (p page) queries() []query {
	var out []query
	var walk func([]panel)
	walk = func(panels []panel) {
		for _, pn := range panels {
			for i, target := range pn.Targets {
				out = append(out, query{fmt.Sprintf("panel %q, query %d", pn.Title, i), target.Expr, target.Instant})
			}
			walk(pn.Panels)
		}
	}
	walk(p.Panels)
	for _, a := range p.Annotations.List {
		if a.Expr != "" {
			out = append(out, query{fmt.Sprintf("annotation %q", a.Name), a.Expr, false})
		}
	}
	return out
}

// source is a server with the history of a fleet.
type source struct {
	*prometheus.Server
	api   promv1.API
	end   time.Time
	known map[string]bool
}

func start(t *testing.T) *source {
	t.Helper()
	paths, err := build.Ensure(t.Context(), t.Output(), build.Prometheus, build.Promtool)
	if err != nil {
		t.Fatal(err)
	}
	s := &source{end: time.Now().Add(-4 * time.Hour).Truncate(time.Minute)}
	past := newFixture(s.end)
	if err := check(past); err != nil {
		t.Fatal(err)
	}
	s.known = names(past)
	dir := t.TempDir()
	if err := prometheus.Backfill(t.Context(), paths[build.Promtool], dir, past); err != nil {
		t.Fatal(err)
	}
	if s.Server, err = prometheus.Start(t.Context(),
		prometheus.Options{Dir: dir, Binary: paths[build.Prometheus]}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background()) })
	if s.api, err = s.API(); err != nil {
		t.Fatal(err)
	}
	return s
}

// definition is how Grafana has the values of a label.
var definition = regexp.MustCompile(`^label_values\((.+),\s*(\w+)\)$`)

// expand puts values in the place of variables, in the order in which a dashboard has them. All of what can be chosen
// is chosen; of a variable without that choice it is the last value, which is the busy one.
func (s *source) expand(ctx context.Context, p page) (func(string) string, error) {
	values := []string{"$__rate_interval", "4m", "$__interval", "1m", "$__range", "4h"}
	for _, v := range p.Templating.List {
		if v.Type != "query" {
			continue
		}
		parts := definition.FindStringSubmatch(v.Definition)
		if parts == nil {
			return nil, fmt.Errorf("variable %s: cannot read %q", v.Name, v.Definition)
		}
		found, err := s.labelValues(ctx, strings.NewReplacer(values...).Replace(parts[1]), parts[2])
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", v.Name, err)
		}
		value := v.AllValue
		if value == "" {
			value = found[len(found)-1]
			if v.Name == "cluster" {
				value = found[0]
			}
		}
		values = append(values, "${"+v.Name+"}", value, "$"+v.Name, value)
	}
	return strings.NewReplacer(values...).Replace, nil
}

func (s *source) labelValues(ctx context.Context, selector, label string) ([]string, error) {
	found, _, _, err := s.api.LabelValues(ctx, label, []string{selector}, s.end.Add(-history), s.end)
	if err != nil {
		return nil, fmt.Errorf("values of %s of %s: %w", label, selector, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s of %s has no values", label, selector)
	}
	out := make([]string, len(found))
	for i, value := range found {
		out[i] = string(value)
	}
	return out, nil
}

// run evaluates a query as its panel does. The error says why it shows nothing, or what Prometheus warns of.
func (s *source) run(ctx context.Context, q query) error {
	var value model.Value
	var warnings promv1.Warnings
	var infos promv1.Infos
	var err error
	if q.instant {
		value, warnings, infos, err = s.api.Query(ctx, q.promql, s.end.Add(-step))
	} else {
		value, warnings, infos, err = s.api.QueryRange(ctx, q.promql,
			promv1.Range{Start: s.end.Add(-history), End: s.end.Add(-step), Step: step})
	}
	if err != nil {
		return err
	}
	if len(warnings)+len(infos) > 0 {
		return fmt.Errorf("prometheus warns: %q %q", warnings, infos)
	}
	switch v := value.(type) {
	case model.Vector:
		if len(v) > 0 {
			return nil
		}
	case model.Matrix:
		if len(v) > 0 {
			return nil
		}
	case *model.Scalar:
		return nil
	}
	return fmt.Errorf("it returns no data")
}

// node is a part of a query as Prometheus has parsed it.
type node map[string]any

// selected adds the names of the series that a query selects.
func (n node) selected(to map[string]bool) {
	if n["type"] == "vectorSelector" || n["type"] == "matrixSelector" {
		name, _ := n["name"].(string)
		to[name] = true
	}
	for _, value := range n {
		switch v := value.(type) {
		case map[string]any:
			node(v).selected(to)
		case []any:
			for _, element := range v {
				if m, ok := element.(map[string]any); ok {
					node(m).selected(to)
				}
			}
		}
	}
}

// parse has Prometheus parse a query and returns the series that it selects.
func (s *source) parse(ctx context.Context, promql string) (map[string]bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		s.URL()+"/api/v1/parse_query?"+url.Values{"query": {promql}}.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Data  node   `json:"data"`
		Error string `json:"error"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("decode parsed query: %w", err)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("parse: %s", answer.Error)
	}
	names := map[string]bool{}
	answer.Data.selected(names)
	return names, nil
}

// TestEveryQuery runs all queries of all dashboards.
func TestEveryQuery(t *testing.T) {
	s := start(t)
	for name, p := range pages(t) {
		t.Run(name, func(t *testing.T) {
			expand, err := s.expand(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			queries := p.queries()
			if len(queries) == 0 {
				t.Fatal("it has no queries")
			}
			for _, q := range queries {
				q.promql = expand(q.promql)
				if strings.Contains(strings.ReplaceAll(q.promql, `"$1"`, ""), "$") {
					t.Errorf("%s: a variable is unknown:\n%s", q.where, q.promql)
				}
				selected, err := s.parse(t.Context(), q.promql)
				if err != nil {
					t.Errorf("%s: %v:\n%s", q.where, err, q.promql)
					continue
				}
				for series := range selected {
					if !s.known[series] {
						t.Errorf("%s: the fleet has no series %q:\n%s", q.where, series, q.promql)
					}
				}
				if err := s.run(t.Context(), q); err != nil {
					t.Errorf("%s: %v:\n%s", q.where, err, q.promql)
				}
			}
		})
	}
}

// TestFaultsAreFound runs queries that are wrong in one way each.
func TestFaultsAreFound(t *testing.T) {
	s := start(t)
	for name, promql := range map[string]string{
		"no data":       `bellwether_operator_info{operator="nobody"}`,
		"a warning":     `rate(bellwether_operator_info[5m])`,
		"many to many":  `bellwether_operator_info * on (cluster) bellwether_operator_expected`,
		"not a counter": `increase(bellwether_operator_csv_succeeded[1h])`,
	} {
		if s.run(t.Context(), query{promql: promql}) == nil {
			t.Errorf("%s is not found in %s", name, promql)
		}
	}
	if _, err := s.parse(t.Context(), "sum by (cluster (up)"); err == nil {
		t.Error("a syntax error is not found")
	}
	selected, err := s.parse(t.Context(),
		`sum(rate(a[5m])) / on (x) group_left () max_over_time((b - c offset 1h)[1h:1m])`)
	if err != nil || len(selected) != 3 || !selected["a"] || !selected["b"] || !selected["c"] {
		t.Errorf("selected are %v (%v), want a, b and c", selected, err)
	}
}
