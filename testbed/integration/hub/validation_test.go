// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

func goodRelease() v1alpha1.Release {
	return v1alpha1.Release{
		Package: "echo", Channel: "stable", Version: "1.1.0", Bundle: "echo.v1.1.0",
		Catalog: v1alpha1.CatalogPin{Source: v1alpha1.CatalogSource{Directory: "/catalog"}, Digest: "sha256:1"},
	}
}

// Good objects of each kind; a test replaces one field.
const (
	goodCluster = `
apiVersion: bellwether.dev/v1alpha1
kind: FleetCluster
metadata: {name: valid}
spec: {}`
	goodCatalog = `
apiVersion: bellwether.dev/v1alpha1
kind: OperatorCatalog
metadata: {name: valid}
spec: {source: {image: "registry.example.com/main:latest"}}`
	goodOperator = `
apiVersion: bellwether.dev/v1alpha1
kind: ManagedOperator
metadata: {name: valid}
spec:
  package: echo
  catalog: {name: none}
  clusterSelector: {}
  strategy:
    waves: [{name: canary, size: 1, maxConcurrency: 1, maxFailures: 0, deadline: 10m, soak: 1m, gates: [{name: sre,` +
		` approval: {}}]}]`
	goodRollout = `
apiVersion: bellwether.dev/v1alpha1
kind: OperatorRollout
metadata: {name: valid}
spec:
  operator: {name: none}
  revision: 1
  clusterSelector: {}
  strategy: {}
  release:
    package: echo
    channel: stable
    version: 1.1.0
    bundle: echo.v1.1.0
    install: {}
    catalog: {digest: "sha256:1", source: {directory: /catalog}}`
	goodInstall = `
apiVersion: bellwether.dev/v1alpha1
kind: OperatorInstall
metadata: {name: none.valid}
spec: {cluster: none, operator: {namespace: none, name: valid}}`
)

// TestValidation makes objects that the API server has to refuse with a message
// that helps, and good ones that it has to take.
func TestValidation(t *testing.T) {
	h := start(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "valid")
	tests := map[string]struct {
		object string
		path   string // of the field to set, from the root
		value  string // YAML; empty removes the field
		want   string // in the refusal; empty: taken
	}{
		"cluster": {goodCluster, "spec.paused", "true", ""},
		"cluster name too long": {goodCluster, "metadata.name", strings.Repeat("a", 51),
			"DNS label of at most 50 characters"},
		"cluster name with a dot":  {goodCluster, "metadata.name", "a.b", "DNS label of at most 50 characters"},
		"cluster offboarding":      {goodCluster, "spec.offboarding", "Explode", "Unsupported value"},
		"catalog":                  {goodCatalog, "spec.pollInterval", "5s", ""},
		"catalog polled too often": {goodCatalog, "spec.pollInterval", "1s", "pollInterval must be at least 5s"},
		"catalog poll no duration": {goodCatalog, "spec.pollInterval", "often", "pollInterval"},
		"catalog with both sources": {goodCatalog, "spec.source.directory", "/catalog",
			"set exactly one of image and directory"},
		"catalog with no source": {goodCatalog, "spec.source", "{}", "set exactly one of image and directory"},
		"catalog with a scheme": {goodCatalog, "spec.source.image", "https://registry.example.com/main",
			"without a scheme"},
		"catalog in a relative directory": {goodCatalog, "spec.source", "{directory: catalog}",
			"must be an absolute path"},
		"catalog with a key": {goodCatalog, "spec.verification",
			"{publicKeys: [\"-----BEGIN PUBLIC KEY-----\\n\"]}", ""},
		"catalog with no key": {goodCatalog, "spec.verification", "{publicKeys: []}",
			"should have at least 1 items"},
		"catalog with a private key": {goodCatalog, "spec.verification",
			"{publicKeys: [\"-----BEGIN PRIVATE KEY-----\\n\"]}", "publicKeys[0]"},
		"directory with a key": {goodCatalog, "spec",
			"{source: {directory: /catalog}, verification: {publicKeys: [\"-----BEGIN PUBLIC KEY-----\\n\"]}}",
			"only an image in a registry has signatures"},
		"block": {goodCatalog, "spec.blocks",
			"[{package: echo, version: 1.2.0, reason: bad, expires: \"2026-12-31\", instead: 1.2.1}]", ""},
		"block without a reason": {goodCatalog, "spec.blocks",
			"[{package: echo, version: 1.2.0, reason: \"\"}]", "reason"},
		"block with another day": {goodCatalog, "spec.blocks",
			"[{package: echo, version: 1.2.0, reason: bad, expires: tomorrow}]", "expires"},
		"block twice": {goodCatalog, "spec.blocks",
			"[{package: echo, version: 1.2.0, reason: a}, {package: echo, version: 1.2.0, reason: b}]",
			"Duplicate value"},
		"operator": {goodOperator, "spec.version", "1.2.3-rc.1+build.5", ""},
		"operator name too long": {goodOperator, "metadata.name", strings.Repeat("a", 51),
			"DNS label of at most 50 characters"},
		"operator version with a v":  {goodOperator, "spec.version", "v1.2.3", "without a leading v"},
		"operator version too short": {goodOperator, "spec.version", "\"1.2\"", "must be a semantic version"},
		"operator range":             {goodOperator, "spec.version", "\">=1.2.0 <2.0.0\"", ""},
		"operator ranges": {goodOperator, "spec.version",
			"\">= 1.2.0 !1.2.7 <1.4.0-rc.1 || =1.5.1+build.2 || 2.1.x\"", ""},
		"operator wildcard":           {goodOperator, "spec.version", "1.x", ""},
		"operator range with a caret": {goodOperator, "spec.version", "^1.2.0", "or a range such as '>=1.2.0 <2.0.0'"},
		"operator range too short":    {goodOperator, "spec.version", "\">=1.2\"", "or a range such as"},
		"operator range with a comma": {goodOperator, "spec.version", "\">=1.2.0, <2.0.0\"", "or a range such as"},
		"operator updates":            {goodOperator, "spec.updates", "{minor: Approval}", ""},
		"operator range with updates": {goodOperator, "spec",
			"{package: echo, catalog: {name: none}, clusterSelector: {}, version: 1.x, updates: {minor: Approval}}",
			""},
		"operator version with updates": {goodOperator, "spec",
			"{package: echo, catalog: {name: none}, clusterSelector: {}, version: 1.2.0, updates: {minor: Approval}}",
			"updates is for a range of versions or the channel's head"},
		"operator update policy": {goodOperator, "spec.updates", "{minor: Never}", "Unsupported value"},
		"operator namespace": {goodOperator, "spec.install", "{namespace: Echo}",
			"namespace must be a DNS label"},
		"operator drift":            {goodOperator, "spec.install", "{drift: Correct}", ""},
		"operator drift policy":     {goodOperator, "spec.install", "{drift: Revert}", "Unsupported value"},
		"operator mode":             {goodOperator, "spec.install", "{mode: Some}", "Unsupported value"},
		"operator without package":  {goodOperator, "spec.package", "", "Required value"},
		"operator without selector": {goodOperator, "spec.clusterSelector", "", "Required value"},
		"operator history":          {goodOperator, "spec.historyLimit", "0", "greater than or equal to 1"},
		"wave": {goodOperator, "spec.strategy.waves",
			"[{name: a, size: 10%, maxConcurrency: 50%, maxFailures: 0%}]", ""},
		"wave name": {goodOperator, "spec.strategy.waves", "[{name: A}]",
			"a wave's name must be a DNS label"},
		"wave names twice": {goodOperator, "spec.strategy.waves", "[{name: a}, {name: a}]",
			"Duplicate value"},
		"wave size zero": {goodOperator, "spec.strategy.waves", "[{name: a, size: 0}]",
			"size: Invalid value: 0: must be a number of at least 1"},
		"wave size of zero percent": {goodOperator, "spec.strategy.waves", "[{name: a, size: 0%}]",
			"waves[0].size in body should match"},
		"wave size above all": {goodOperator, "spec.strategy.waves", "[{name: a, size: 101%}]",
			"waves[0].size in body should match"},
		"wave size in words": {goodOperator, "spec.strategy.waves", "[{name: a, size: many}]",
			"waves[0].size in body should match"},
		"wave concurrency zero": {goodOperator, "spec.strategy.waves", "[{name: a, maxConcurrency: 0}]",
			"maxConcurrency: Invalid value: 0: must be a number of at least 1"},
		"wave failures negative": {goodOperator, "spec.strategy.waves", "[{name: a, maxFailures: -1}]",
			"maxFailures: Invalid value: -1: must be a number of at least 0"},
		"wave deadline too short": {goodOperator, "spec.strategy.waves", "[{name: a, deadline: 0s}]",
			"deadline must be at least 1s"},
		"wave soak negative": {goodOperator, "spec.strategy.waves", "[{name: a, soak: -1s}]",
			"soak must not be negative"},
		"gate without a check": {goodOperator, "spec.strategy.waves", "[{name: a, gates: [{name: g}]}]",
			"a gate needs exactly one of approval, slo, baseline, promQL and job"},
		"too many waves": {goodOperator, "spec.strategy.waves", "[" +
			strings.TrimSuffix(manyWaves(21), ",") + "]", "Too many"},
		"max deferred": {goodOperator, "spec.strategy.maxDeferred", "-1",
			"maxDeferred: Invalid value: -1: must be a number of at least 0"},
		"max deferred in percent": {goodOperator, "spec.strategy.maxDeferred", "10%", ""},
		"failure policy":          {goodOperator, "spec.strategy.onFailure", "Panic", "Unsupported value"},
		"rollout":                 {goodRollout, "spec.paused", "true", ""},
		"rollout name too long": {goodRollout, "metadata.name", strings.Repeat("a", 64),
			"at most 63 characters"},
		"rollout revision zero":          {goodRollout, "spec.revision", "0", "greater than or equal to 1"},
		"rollout without digest":         {goodRollout, "spec.release.catalog.digest", "\"\"", "digest"},
		"rollout aborted without a word": {goodRollout, "spec.abort", "{reason: \"\"}", "reason"},
		"rollout approved by nobody": {goodRollout, "spec.approvals", "[{wave: a, gate: g, by: \"\", reason: r}]",
			"by"},
		"install":                {goodInstall, "spec.removalPolicy", "Uninstall", ""},
		"install removal policy": {goodInstall, "spec.removalPolicy", "Explode", "Unsupported value"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := parse(t, test.object, namespace)
			set(t, object, test.path, test.value)
			err := h.Create(t.Context(), object, client.DryRunAll)
			expect(t, err, test.want)
		})
	}
}

// TestTransitions changes fields that are fixed once an object exists.
func TestTransitions(t *testing.T) {
	h := start(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "fixed")
	tests := map[string]struct {
		object string
		before string // field = YAML, set at creation
		path   string
		value  string
		want   string
	}{
		"operator version": {goodOperator, "", "spec.version", "1.0.0", ""},
		"operator package": {goodOperator, "", "spec.package", "other", "package cannot be changed"},
		"rollout pause":    {goodRollout, "", "spec.paused", "true", ""},
		"rollout abort":    {goodRollout, "", "spec.abort", "{reason: because}", ""},
		"rollout abort taken back": {goodRollout, "spec.abort={reason: because}", "spec.abort", "",
			"an aborted rollout stays aborted"},
		"rollout revision": {goodRollout, "", "spec.revision", "2", "revision cannot be changed"},
		"rollout release":  {goodRollout, "", "spec.release.version", "2.0.0", "release cannot be changed"},
		"rollout operator": {goodRollout, "", "spec.operator.name", "other", "operator cannot be changed"},
		"rollout selector": {goodRollout, "", "spec.clusterSelector", "{matchLabels: {a: b}}",
			"clusterSelector cannot be changed"},
		"rollout retries":       {goodRollout, "spec.retries=1", "spec.retries", "2", ""},
		"rollout retries added": {goodRollout, "", "spec.retries", "1", ""},
		"rollout retries lowered": {goodRollout, "spec.retries=2", "spec.retries", "1",
			"retries can only be raised"},
		"rollout retries removed": {goodRollout, "spec.retries=1", "spec.retries", "",
			"retries can only be raised"},
		"rollout retries of zero removed": {goodRollout, "spec.retries=0", "spec.retries", "", ""},
		"rollout restart": {goodRollout, "spec.restart=a", "spec.restart", "b",
			"restart cannot be changed"},
		"rollout restart added": {goodRollout, "", "spec.restart", "a", "restart cannot be added or removed"},
		"rollout restart removed": {goodRollout, "spec.restart=a", "spec.restart", "",
			"restart cannot be added or removed"},
		"rollout strategy": {goodRollout, "", "spec.strategy", "{onFailure: Abort}",
			"strategy cannot be changed while it runs"},
		"rollout requirements": {goodRollout, "spec.requirements={notRead: a}", "spec.requirements", "{notRead: b}",
			"requirements cannot be changed"},
		"rollout requirements added": {goodRollout, "", "spec.requirements", "{}",
			"requirements cannot be added or removed"},
		"rollout requirements removed": {goodRollout, "spec.requirements={notRead: a}", "spec.requirements", "",
			"requirements cannot be added or removed"},
		"rollout resumed": {goodRollout, "spec.resumed=1", "spec.resumed", "2", "resumed cannot be changed"},
		"rollout resumed added": {goodRollout, "", "spec.resumed", "1",
			"resumed cannot be added or removed"},
		"rollout resumed removed": {goodRollout, "spec.resumed=1", "spec.resumed", "",
			"resumed cannot be added or removed"},
		"install cluster":  {goodInstall, "", "spec.cluster", "other", "cluster cannot be changed"},
		"install operator": {goodInstall, "", "spec.operator.name", "other", "operator cannot be changed"},
		"install operator namespace": {goodInstall, "", "spec.operator.namespace", "other",
			"operator cannot be changed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := parse(t, test.object, namespace)
			object.SetName(strings.ReplaceAll(name, " ", "-"))
			if path, value, ok := strings.Cut(test.before, "="); ok {
				set(t, object, path, value)
			}
			must(t, h.Create(t.Context(), object))
			before := object.DeepCopy()
			set(t, object, test.path, test.value)
			expect(t, h.Patch(t.Context(), object, client.MergeFrom(before), client.DryRunAll), test.want)
		})
	}
}

// TestDefaults reads back what the API server fills in.
func TestDefaults(t *testing.T) {
	h := start(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "default")
	operator := parse(t, goodOperator, namespace)
	set(t, operator, "spec.strategy.waves", "[{name: a}]")
	must(t, h.Create(t.Context(), operator, client.DryRunAll))
	for path, want := range map[string]any{
		"spec.removalPolicy": "Orphan", "spec.historyLimit": int64(5), "spec.strategy.onFailure": "Pause",
		"spec.strategy.offline": "Defer", "spec.strategy.lateJoiners": "Join", "spec.strategy.newTarget": "Supersede",
	} {
		got, _, err := unstructured.NestedFieldNoCopy(operator.Object, strings.Split(path, ".")...)
		must(t, err)
		if got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
	waves, _, err := unstructured.NestedSlice(operator.Object, "spec", "strategy", "waves")
	must(t, err)
	wave := waves[0].(map[string]any)
	if wave["maxConcurrency"] != "25%" || wave["maxFailures"] != int64(0) || wave["deadline"] != "30m" {
		t.Errorf("wave: %v", wave)
	}
}

func manyWaves(n int) string {
	var text strings.Builder
	for i := range n {
		text.WriteString("{name: w" + strings.Repeat("x", i) + "},")
	}
	return text.String()
}

func parse(t *testing.T, text, namespace string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(text), &object.Object))
	if object.GetKind() != "FleetCluster" {
		object.SetNamespace(namespace)
	}
	return object
}

func set(t *testing.T, object *unstructured.Unstructured, path, value string) {
	t.Helper()
	fields := strings.Split(path, ".")
	if value == "" {
		unstructured.RemoveNestedField(object.Object, fields...)
		return
	}
	var parsed any
	must(t, yaml.Unmarshal([]byte(value), &parsed))
	if number, ok := parsed.(float64); ok {
		parsed = int64(number)
	}
	must(t, unstructured.SetNestedField(object.Object, parsed, fields...))
}

func expect(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		must(t, err)
		return
	}
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want a refusal with %q", err, want)
	}
}
