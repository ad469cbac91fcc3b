// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/internal/tools/long"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

// inChannel is a package whose only and default channel has this name.
func inChannel(t testing.TB, channel, notation string) *catalogs.Package {
	t.Helper()
	text := strings.ReplaceAll(catalogtest.Graph("echo", notation), `"stable"`, `"`+channel+`"`)
	pkg, err := catalogs.ReadPackage(catalogs.SingleFile("test", strings.NewReader(text)), "echo")
	if err != nil {
		t.Fatalf("read package: %v", err)
	}
	return pkg
}

// badSettings are the same settings, as several people would write them.
func badSettings() []v1alpha1.InstallSettings {
	a, b := corev1.EnvVar{Name: "A", Value: "1"}, corev1.EnvVar{Name: "B", Value: "2"}
	return []v1alpha1.InstallSettings{
		{Config: &v1alpha1.OperatorConfig{Env: []corev1.EnvVar{a, b}}},
		{Config: &v1alpha1.OperatorConfig{Env: []corev1.EnvVar{b, a}}, Mode: v1alpha1.InstallAllNamespaces},
		{Config: &v1alpha1.OperatorConfig{Env: []corev1.EnvVar{a, b}, Tolerations: []corev1.Toleration{}},
			Namespace: "echo"},
	}
}

// goodSettings are others.
func goodSettings() []v1alpha1.InstallSettings {
	return []v1alpha1.InstallSettings{
		{},
		{Config: &v1alpha1.OperatorConfig{Env: []corev1.EnvVar{{Name: "A", Value: "1"}}}},
		{Config: &v1alpha1.OperatorConfig{NodeSelector: map[string]string{"disk": "fast"}}},
	}
}

// settingsHistory is an operator whose bad settings at 1.1.0 were rolled back.
type settingsHistory struct {
	history
	// bad is true if the spec has the bad settings. released is true if a person has released them.
	bad, released bool
}

func newSettingsHistory(t *testing.T, seed uint64) *settingsHistory {
	h := &settingsHistory{history: history{Input: newInput(t), t: t, seed: seed}}
	h.random = rand.New(rand.NewPCG(seed, 3))
	h.highest = 1
	settle := func() {
		for range 3 {
			h.apply(operators.Next(h.Input))
		}
	}
	h.Operator.Spec.Install.InstallSettings, h.bad = badSettings()[0], true
	settle()
	was, r := h.Rollouts[0].Spec.Release, &h.Rollouts[len(h.Rollouts)-1]
	if r.Spec.Revision != 2 {
		t.Fatalf("seed %d: no rollout of the bad settings", seed)
	}
	h.succeed(r)
	r.UID, r.Status.Phase, r.Status.EndedAt = "uid-2", v1alpha1.RolloutRolledBack, &created
	r.Status.Message = "it is bad"
	for i := range h.Installs {
		h.Installs[i].Admitted = rollouts.Install{Cluster: h.Installs[i].Cluster, Previous: was.ToPrevious(),
			Stamp: rollouts.Stamp{RolloutUID: "uid-2", Hash: r.Spec.Release.Hash()}}
	}
	settle()
	if back := h.Rollouts[len(h.Rollouts)-1]; back.Spec.Rollback == nil || len(h.Operator.Spec.Holds) != 1 {
		t.Fatalf("seed %d: no rollback: %+v", seed, h.Operator.Spec.Holds)
	}
	h.succeed(&h.Rollouts[len(h.Rollouts)-1])
	settle()
	return h
}

// TestHeldSettingsStayHeld lets catalogs, channels, keys, people, clusters and hubs do what they like: settings that
// were rolled back are not rolled out again at that version before a person releases them, and all others are.
func TestHeldSettingsStayHeld(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(long.Cases(200, 5000)) {
		h := newSettingsHistory(t, seed)
		for range 40 {
			h.change()
			h.lookTwice(seen)
		}
	}
	for _, what := range []string{"held", "rolled out", "rolled out after its release"} {
		if seen[what] == 0 {
			t.Errorf("never %s: %v", what, seen)
		}
	}
}

// change lets one thing happen that must not end the hold.
func (h *settingsHistory) change() {
	spec := &h.Operator.Spec
	switch h.random.IntN(12) {
	case 0, 1:
		h.Package = inChannel(h.t, fmt.Sprintf("channel-%d", h.random.IntN(3)), upTo110)
		spec.Channel = ""
		h.Catalog.Status.Digest = fmt.Sprintf("sha256:%d", h.random.IntN(100))
	case 2:
		spec.Channel = h.Package.DefaultChannel
	case 3:
		h.Catalog.Spec.Verification = &v1alpha1.CatalogVerification{PublicKeys: []string{fmt.Sprint(h.random.IntN(9))}}
	case 4:
		h.Catalog.Status.Source = &v1alpha1.CatalogSource{Image: fmt.Sprintf("mirror-%d/main", h.random.IntN(3))}
	case 5:
		spec.Version = []string{"", "1.1.0"}[h.random.IntN(2)]
	case 6:
		spec.Restart = fmt.Sprint(h.random.IntN(100))
	case 7, 8:
		h.bad = h.random.IntN(3) > 0
		settings := goodSettings()
		if h.bad {
			settings = badSettings()
		}
		spec.Install.InstallSettings = settings[h.random.IntN(len(settings))]
	case 9:
		h.Clusters = append(h.Clusters, rollouts.Cluster{Name: fmt.Sprintf("c%d", len(h.Clusters)), Online: true})
	case 10:
		h.loseHub()
	default:
		for i := range h.Rollouts {
			if r := &h.Rollouts[i]; !r.Status.Phase.Ended() && r.Spec.Abort == nil {
				h.succeed(r)
			} else if !r.Status.Phase.Ended() {
				r.Status.Phase = v1alpha1.RolloutSuperseded
			}
		}
	}
	if !h.released && h.random.IntN(60) == 0 {
		spec.Holds, h.released = nil, true
		for i := range h.Installs {
			h.Installs[i].Kept = nil // the agents have got the word too
		}
	}
}

// loseHub starts a new hub that has only the ManagedOperator from Git and what the clusters keep.
func (h *settingsHistory) loseHub() {
	if h.released || len(h.Rollouts) == 0 {
		return
	}
	revision := h.highest
	kept := slices.Clone(h.Operator.Spec.Holds)
	h.Operator.Spec.Holds, h.Operator.Status = nil, v1alpha1.ManagedOperatorStatus{}
	h.Operator.UID = types.UID(fmt.Sprintf("uid-%d", h.random.Int())) // who agreed to go on did so for the old hub
	for i := range h.Installs {
		release := h.Rollouts[0].Spec.Release
		for _, r := range h.Rollouts {
			if r.Spec.Release.Hash() == h.Installs[i].SucceededHash {
				release = r.Spec.Release
			}
		}
		h.Installs[i].Kept = &v1alpha1.KeptAdmission{Holds: kept, Admission: v1alpha1.Admission{Rollout: "lost",
			RolloutUID: "lost", Revision: revision, Hash: release.Hash(), Release: release}}
		h.Installs[i].Holds, h.Installs[i].Revision, h.Installs[i].Rollout = nil, 0, ""
		h.Installs[i].Admitted = rollouts.Install{Cluster: h.Installs[i].Cluster, Recovered: revision}
	}
	h.Rollouts = nil
}

// lookTwice decides until nothing changes, and checks what is rolled out.
func (h *settingsHistory) lookTwice(seen map[string]int) {
	for range 8 {
		known := len(h.Rollouts)
		d := h.apply(operators.Next(h.Input))
		for _, a := range d.Recover {
			for i := range h.Installs {
				if h.Installs[i].Namespace == a.Key.Namespace {
					h.Installs[i].Kept, h.Installs[i].Revision = nil, a.Admission.Revision
					h.Installs[i].Release = a.Admission.Release.DeepCopy()
				}
			}
		}
		if a := d.Status.Recovery; a != nil && len(d.Recover) == 0 && d.Holds == nil {
			h.Operator.Spec.Resume = a.Request
		}
		if d.Create == nil && len(h.Rollouts) == known && d.Holds == nil && d.Status.Recovery == nil {
			h.checkHeld(d, seen)
			return
		}
		if d.Create != nil && h.bad && !h.released {
			h.t.Fatalf("seed %d: the settings are held, and rolled out again: %+v in channel %s, held is %+v", h.seed,
				d.Create.Spec.Release.Install, d.Create.Spec.Release.Channel, h.Operator.Spec.Holds)
		}
	}
	h.t.Fatalf("seed %d: nothing comes to rest", h.seed)
}

func (h *settingsHistory) checkHeld(d operators.Decision, seen map[string]int) {
	ready := conditions.Get(d.Status.Conditions, v1alpha1.ConditionReady)
	switch isHeld := ready.Reason == v1alpha1.ReasonVersionHeld; {
	case isHeld && (!h.bad || h.released):
		h.t.Fatalf("seed %d: good settings are held: %s", h.seed, ready.Message)
	case isHeld:
		seen["held"]++
	case h.released && h.bad:
		seen["rolled out after its release"]++
	default:
		seen["rolled out"]++
	}
}

// TestHoldsOfEarlierVersions checks that a hold with only the hash of a release continues to hold the release, and
// holds its settings when they are known.
func TestHoldsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	h := newSettingsHistory(t, 1)
	full := h.Operator.Spec.Holds[0]
	old := full
	old.Settings, old.Changes = "", nil
	h.Operator.Spec.Holds = []v1alpha1.VersionHold{old}

	next := operators.Next(h.Input)
	if next.Holds == nil || next.Create != nil {
		t.Fatalf("the hold is not completed: %+v", next)
	}
	if diff := cmp.Diff([]v1alpha1.VersionHold{full}, *next.Holds); diff != "" {
		t.Errorf("while the rollout is there (-want +got):\n%s", diff)
	}

	h.Rollouts = h.Rollouts[2:] // only the rollback is left
	next = operators.Next(h.Input)
	if ready := conditions.Get(next.Status.Conditions, v1alpha1.ConditionReady); next.Holds != nil ||
		ready.Reason != v1alpha1.ReasonVersionHeld {
		t.Errorf("where nobody knows the settings, exactly the release is held: %+v, %s", next.Holds, ready.Message)
	}

	release := v1alpha1.Release{Package: "echo", Channel: "stable", Version: "1.1.0", Bundle: "echo.v1.1.0",
		Install: badSettings()[2]}
	old.Release = release.Hash()
	h.Operator.Spec.Holds, h.Installs[0].Release = []v1alpha1.VersionHold{old}, &release
	if next = operators.Next(h.Input); next.Holds == nil || (*next.Holds)[0].Settings != full.Settings {
		t.Errorf("while a cluster has the release: %+v", next.Holds)
	}
}

// TestChangedChannelIsHeld: a rollout that changed nothing but the channel is not repeated, and what clusters were
// taken back to is not held with it.
func TestChangedChannelIsHeld(t *testing.T) {
	t.Parallel()
	in := failed(t)
	in.Package = ladder(t, upTo110)
	was := in.Rollouts[0].Spec.Release
	bad := &in.Rollouts[1].Spec.Release
	*bad = was
	bad.Channel = "beta"
	next := operators.Next(in)
	if next.Holds == nil || next.Create == nil {
		t.Fatalf("no rollback: %+v", next)
	}
	hold := (*next.Holds)[0]
	if diff := cmp.Diff([]string{"the channel is beta, was stable"}, hold.Changes); diff != "" || hold.Settings != "" {
		t.Errorf("settings %q are held; changes (-want +got):\n%s", hold.Settings, diff)
	}
	if message := conditions.Get(next.Status.Conditions, v1alpha1.ConditionVersionHeld).Message; !strings.HasPrefix(
		message, "One release of version 1.1.0 is held since ") || !strings.Contains(message,
		"(the change: the channel is beta, was stable). Exactly this release is not rolled out again. ") {
		t.Errorf("the condition says: %s", message)
	}
	next.Create.Status.Phase = v1alpha1.RolloutSucceeded
	in.Rollouts, in.Operator.Spec.Holds = append(in.Rollouts, *next.Create), *next.Holds
	in.Installs[0].SucceededHash, in.Installs[0].Ready = was.Hash(), true
	check(t, in, want{state: "True", reason: v1alpha1.ReasonSucceeded})
	in.Package = inChannel(t, "beta", upTo110)
	check(t, in, want{state: "Stalled", reason: v1alpha1.ReasonVersionHeld,
		contains: "one release of version 1.1.0 is held"})
	in.Rollouts = slices.Delete(in.Rollouts, 2, 3) // without the rollback nobody can look up what it took back
	if holds := operators.Next(in).Holds; holds != nil {
		t.Errorf("other releases with these settings are held as well: %+v", *holds)
	}
}

// TestSeveralHoldsOfAVersion checks that a hold of settings does not hide a hold of the version, and that a message
// names the rollout whose hold must be released.
func TestSeveralHoldsOfAVersion(t *testing.T) {
	t.Parallel()
	in := newInput(t)
	release := in.Rollouts[0].Spec.Release
	in.Operator.Spec.Version = "1.1.0"
	in.Operator.Spec.Holds = []v1alpha1.VersionHold{
		{Version: "1.1.0", Settings: "others", Rollout: "echo-0", Reason: "bad", Since: metav1.Time{}},
		{Version: "1.1.0", Settings: release.SettingsHash(), Rollout: "echo-9", Reason: "worse"},
	}
	check(t, in, want{state: "Stalled", reason: v1alpha1.ReasonVersionHeld,
		contains: "settings of version 1.1.0 are held: worse; change spec.install, or release the hold with " +
			"`bellwether operator release-hold echo 1.1.0 --rollout echo-9`"})
	in.Operator.Spec.Holds[1] = v1alpha1.VersionHold{Version: "1.1.0", Reason: "we do not trust it"}
	check(t, in, want{state: "Stalled", reason: v1alpha1.ReasonVersionHeld,
		contains: "version 1.1.0 is held: we do not trust it; set spec.version to a corrected version"})
}

// TestAgentsCannotDisplaceHoldsOfSettings: an agent that keeps a hold with hashes of others adds one, and hides none.
func TestAgentsCannotDisplaceHoldsOfSettings(t *testing.T) {
	t.Parallel()
	honest := v1alpha1.VersionHold{Version: "1.1.0", Settings: "s", Release: "r", Rollout: "echo-6", Reason: "bad"}
	forged := honest
	forged.Settings = "nothing"
	in := found(t, 7, forged)
	for _, name := range []string{"x", "y"} {
		i := in.Installs[0]
		i.Cluster, i.Namespace, i.Kept = name, "bellwether-"+name, kept(in, 7, honest)
		in.Installs = append(in.Installs, i)
	}
	next := operators.Next(in)
	if next.Holds == nil {
		t.Fatal("no hold is recovered")
	}
	if diff := cmp.Diff([]v1alpha1.VersionHold{honest, forged}, *next.Holds); diff != "" {
		t.Errorf("holds (-want +got):\n%s", diff)
	}
	in.Operator.Spec.Holds = []v1alpha1.VersionHold{honest}
	for i := range in.Installs { // its agent is older, and has lost the field
		if in.Installs[i].Kept != nil {
			in.Installs[i].Kept = kept(in, 7, v1alpha1.VersionHold{Version: "1.1.0", Release: "r", Reason: "bad"})
		}
	}
	if next := operators.Next(in); next.Holds != nil {
		t.Errorf("the same hold is recovered twice: %+v", *next.Holds)
	}
}

// TestNoClusterRunsIt: an operator is not Ready because nothing is wrong with none of its clusters.
func TestNoClusterRunsIt(t *testing.T) {
	t.Parallel()
	in := newInput(t)
	in.Installs = nil // those that ran it have left
	for i := range in.Clusters {
		in.Clusters[i].Online = false
	}
	check(t, in, want{state: "False", reason: v1alpha1.ReasonClustersNotReady,
		contains: "0 of 2 clusters run 1.1.0; deferred because offline or paused: a, b; no cluster runs it now"})
}

// TestRunningRolloutOfHeldSettingsStops checks that a hold that was found on clusters stops a rollout with the same
// settings, and does not stop a rollback.
func TestRunningRolloutOfHeldSettingsStops(t *testing.T) {
	t.Parallel()
	in := newInput(t)
	running := &in.Rollouts[0]
	running.Status.Phase = v1alpha1.RolloutProgressing
	in.Operator.Spec.Holds = []v1alpha1.VersionHold{{Version: "1.1.0", Settings: running.Spec.Release.SettingsHash(),
		Release: "of another channel", Rollout: "echo-9", Reason: "it was rolled back"}}
	next := operators.Next(in)
	want := &operators.Block{Rollout: running.Name, Reason: "settings of version 1.1.0 are held: it was rolled back; " +
		"change spec.install, or release the hold with `bellwether operator release-hold echo 1.1.0`"}
	if diff := cmp.Diff(want, next.Block); diff != "" {
		t.Errorf("block (-want +got):\n%s", diff)
	}
	running.Spec.Rollback = &v1alpha1.RolloutRollback{Of: "echo-9"}
	if next := operators.Next(in); next.Block != nil {
		t.Errorf("a rollback is blocked: %+v", next.Block)
	}
}
