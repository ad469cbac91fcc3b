// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/root"
)

// lease returns the Lease of a hub that was last seen this long ago.
func lease(namespace string, age time.Duration) client.Object {
	at := metav1.NewMicroTime(fixture.Noon.Add(-age))
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.HubLeaseName},
		Spec: coordinationv1.LeaseSpec{RenewTime: &at}}
}

// fleetOf returns a hub with a fleet, an operator, a rollout, and the given objects.
func fleetOf(more ...client.Object) *clitest.Hub {
	objects := append(more, fixture.Operator(), fixture.HaltedRollout())
	for _, c := range fixture.FleetOfFour() {
		objects = append(objects, &c)
	}
	for _, in := range fixture.Installs() {
		objects = append(objects, &in)
	}
	return clitest.NewHub(objects...)
}

// leaves returns the commands without subcommands, by their path.
func leaves(c *cobra.Command, path ...string) []string {
	var out []string
	for _, child := range c.Commands() {
		own := append(path[:len(path):len(path)], child.Name())
		if len(child.Commands()) == 0 {
			out = append(out, strings.Join(own, " "))
		}
		out = append(out, leaves(child, own...)...)
	}
	return out
}

const seen = "The hub was last seen at 2026-11-21T11:53:00Z, 7m ago: what is below may be older than it looks.\n"

// TestEveryCommandReadsOrNot: each command is listed, and a command that shows data of the hub prints the data's age.
func TestEveryCommandReadsOrNot(t *testing.T) {
	all := leaves(root.New(command.NewEnv("bellwether", genericiooptions.NewTestIOStreamsDiscard())))
	for _, path := range all {
		if _, listed := root.Reading[path]; !listed {
			t.Errorf("say in reading.go whether `bellwether %s` shows what the hub knows", path)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "c.json"), []byte(oneVersion), 0o600); err != nil {
		t.Fatal(err)
	}
	args := map[string]string{
		"backup list": "", "backup show": "prod-1 a", "catalog diff": dir + " " + dir + " --installed hub",
		"catalog get": "main", "catalog graph": dir + " p --installed hub", "catalog list": "",
		"fleet compatibility": "--kubernetes 1.37", "fleet get": "prod-1", "fleet list": "", "fleet scan": "",
		"oncall handover": "", "operator adopt": "echo --dry-run", "operator get": "echo", "operator list": "",
		"page lint": "", "page preview": "BellwetherHeartbeat", "rollout get": "echo", "rollout history": "echo",
		"rollout plan": "echo", "rollout status": "echo-2", "silence list": "", "versions": "",
		"why": "prod-1 echo",
	}
	// These read the hub only after another server has answered.
	others := []string{"catalog vulnerabilities", "slo get"}
	for path, reads := range root.Reading {
		if !slices.Contains(all, path) {
			t.Errorf("there is no command `bellwether %s`", path)
		}
		given, tested := args[path]
		if !reads || slices.Contains(others, path) {
			continue
		}
		t.Run(path, func(t *testing.T) {
			if !tested {
				t.Fatal("it is not tested")
			}
			h := fleetOf(lease("bellwether-system", 7*time.Minute))
			got := h.Run(t, append(strings.Fields(path), strings.Fields(given)...)...)
			if n := strings.Count(got.Err, seen); n != 1 {
				t.Errorf("it says %d times when the hub was last seen:\n%s%s", n, got.Err, got.Out)
			}
		})
	}
}

// TestOldStateLooksOld: the line is there if the hub has been away for more than a minute, and other
// commands do not check it.
func TestOldStateLooksOld(t *testing.T) {
	for name, c := range map[string]struct {
		leases []client.Object
		want   string
	}{
		"seven minutes": {[]client.Object{lease("hub", 7*time.Minute)}, seen},
		"a minute":      {[]client.Object{lease("hub", time.Minute)}, ""},
		"a second more": {[]client.Object{lease("hub", 61*time.Second)},
			"last seen at 2026-11-21T11:58:59Z, 61s ago"},
		"just now":               {[]client.Object{lease("hub", 0)}, ""},
		"a clock that is behind": {[]client.Object{lease("hub", -time.Hour)}, ""},
		"a hub that moved":       {[]client.Object{lease("old", 48*time.Hour), lease("new", time.Second)}, ""},
		"no hub that agrees":     {nil, ""},
		"another Lease": {[]client.Object{&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-a",
			Name: v1alpha1.LeaseName}}}, ""},
		"never held": {[]client.Object{&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "hub",
			Name: v1alpha1.HubLeaseName}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := fleetOf(c.leases...).MustRun(t, "fleet", "list")
			if (got.Err != "") != (c.want != "") || !strings.Contains(got.Err, c.want) {
				t.Errorf("it says %q, want %q", got.Err, c.want)
			}
		})
	}
	h := fleetOf(lease("hub", 7*time.Minute))
	h.Forbidden = []string{"LeaseList"}
	if got := h.MustRun(t, "fleet", "list"); got.Err != "" {
		t.Errorf("without the right to read the Lease it says %q", got.Err)
	}
	h.Forbidden = nil
	got := h.MustRun(t, "fleet", "list", "-o", "json")
	if !json.Valid([]byte(got.Out)) || !strings.Contains(got.Err, seen) {
		t.Errorf("with -o json it writes\n%s\nand says %q", got.Out, got.Err)
	}
}

var clockTime = regexp.MustCompile(`\d\d:\d\d(?::\d\d)?(.{0,4})`)

// TestOneTimeZone: in every time zone, a command prints UTC and names it.
func TestOneTimeZone(t *testing.T) {
	before := time.Local
	time.Local = time.FixedZone("IST", int((5*time.Hour + 30*time.Minute).Seconds()))
	t.Cleanup(func() { time.Local = before })
	env := command.NewEnv("bellwether", genericiooptions.NewTestIOStreamsDiscard())
	if zone := env.Now().Location(); zone != time.UTC {
		t.Errorf("commands take the time in %s", zone)
	}
	found := 0
	for _, args := range []string{"fleet list -o wide", "fleet get prod-3", "operator list -A -o wide",
		"operator get echo", "rollout get -A -o wide", "rollout get echo", "rollout history echo",
		"rollout status echo-2", "why prod-3 echo", "oncall handover", "versions", "backup list", "silence list"} {
		h := fleetOf(lease("hub", 7*time.Minute))
		got := h.Run(t, strings.Fields(args)...)
		for _, match := range clockTime.FindAllStringSubmatch(got.Out+got.Err, -1) {
			found++
			if !strings.HasPrefix(match[1], "Z") && match[1] != " UTC" {
				t.Errorf("%s prints a time without its zone: %s", args, match[0])
			}
			if strings.Contains(match[0], ":30:00") || strings.HasPrefix(match[0], "17:") {
				t.Errorf("%s prints a time of another zone: %s", args, match[0])
			}
		}
	}
	if found < 10 {
		t.Errorf("there are only %d times in what commands print", found)
	}
}

// TestStateFilter lists the objects with a mark, and the available marks.
func TestStateFilter(t *testing.T) {
	paused := clitest.Cluster("paused-1", nil)
	paused.Spec.Paused = true
	h := fleetOf(paused)
	for args, want := range map[string]string{
		"fleet list -o name --state stale": "fleetcluster.bellwether.dev/prod-3\n",
		"fleet list -o name --state paused,stale": "fleetcluster.bellwether.dev/paused-1\n" +
			"fleetcluster.bellwether.dev/prod-3\n",
		"fleet list -o name --state Paused":    "fleetcluster.bellwether.dev/paused-1\n",
		"fleet list --state frozen":            "No clusters in these states.\n",
		"operator list -o name --state stale":  "managedoperator.bellwether.dev/echo\n",
		"operator list -o name --state vetoed": "",
		"rollout list -o name --state stale":   "operatorrollout.bellwether.dev/echo-2\n",
		"rollout list -o name --state drifted": "",
		"operator list -o name --state update": "",
		"__complete fleet list --state stale,": "stale,drifted\nstale,vetoed\nstale,paused\nstale,frozen\n",
		"__complete rollout get --state dr":    "stale\ndrifted\nvetoed\npaused\nfrozen\n",
		"__complete operator list --state dr":  "stale\ndrifted\nvetoed\npaused\nfrozen\nupdate\n",
	} {
		got := h.MustRun(t, strings.Fields(args)...)
		text, _, _ := strings.Cut(got.Out, ":")
		if !strings.HasPrefix(args, "__complete") {
			text = got.Out + got.Err
		}
		if text != want {
			t.Errorf("%s writes %q, want %q", args, text, want)
		}
	}
	const ofAll = "stale,drifted,vetoed,paused,frozen"
	for args, hint := range map[string]string{
		"fleet list --state old":        "clusters have these: " + ofAll,
		"fleet list --state update":     "clusters have these: " + ofAll,
		"operator list --state old":     "operators have these: " + ofAll + ",update",
		"rollout get --state stale,old": "rollouts have these: " + ofAll,
		"rollout list --state Update":   "rollouts have these: " + ofAll,
	} {
		fields := strings.Fields(args)
		got := h.Run(t, fields...)
		words := strings.Split(fields[len(fields)-1], ",")
		want := fmt.Sprintf("invalid value of --state: unknown state %q\nHint:  %s\n", words[len(words)-1], hint)
		if got.Code != 1 || !strings.HasSuffix(got.Err, want) {
			t.Errorf("%s ends with %d: %s", args, got.Code, got.Err)
		}
	}
}

// TestMarksOfOthers: without permission to read the installs of all clusters, a list is printed with a warning. Marks
// that are not shown are not read.
func TestMarksOfOthers(t *testing.T) {
	h := fleetOf()
	h.Forbidden = []string{"OperatorInstallList"}
	const missing = "You may not list the clusters and OperatorInstalls of the whole hub: marks are not complete.\n"
	for args, want := range map[string]string{"fleet list": missing, "operator list -o wide": missing,
		"rollout list": missing, "fleet list -o name --state stale": missing, "fleet list -o name": "",
		"operator list -o json": "", "rollout list -o yaml": ""} {
		if got := h.MustRun(t, strings.Fields(args)...); got.Err != want || got.Out == "" {
			t.Errorf("%s says %q, want %q, and writes\n%s", args, got.Err, want, got.Out)
		}
	}
}
