// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silences_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/silences"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

func install(namespace, name, cluster string, change ...func(*v1alpha1.OperatorInstall)) v1alpha1.OperatorInstall {
	i := v1alpha1.OperatorInstall{Spec: v1alpha1.OperatorInstallSpec{Cluster: cluster,
		Operator: v1alpha1.OperatorReference{Namespace: namespace, Name: name}}}
	for _, c := range change {
		c(&i)
	}
	return i
}

// admitted is an upgrade that was admitted before noon.
func admitted(before time.Duration) func(*v1alpha1.OperatorInstall) {
	return func(i *v1alpha1.OperatorInstall) {
		i.Spec.Admission = &v1alpha1.Admission{Rollout: "echo-2", Wave: "canary", Hash: "h",
			AdmittedAt: metav1.NewTime(noon.Add(-before)), Release: v1alpha1.Release{Version: "1.1.0"},
			Previous: &v1alpha1.PreviousRelease{Version: "1.0.0"}}
	}
}

func succeeded(before time.Duration) func(*v1alpha1.OperatorInstall) {
	return func(i *v1alpha1.OperatorInstall) {
		i.Status.SucceededHash, i.Status.SucceededAt = "h", &metav1.Time{Time: noon.Add(-before)}
	}
}

func firstInstallation(i *v1alpha1.OperatorInstall) { i.Spec.Admission.Previous = nil }

func vetoed(v v1alpha1.ClusterVeto) v1alpha1.FleetCluster {
	v.Reason = "audit"
	return v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Status: v1alpha1.FleetClusterStatus{Veto: &v}}
}

// powered returns a cluster with a power state since a time before noon, and with whether the hub trusts the state.
func powered(state v1alpha1.ClusterPowerState, before time.Duration, believed bool) v1alpha1.FleetCluster {
	c := v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: v1alpha1.FleetClusterStatus{
		Source: &v1alpha1.ClusterSource{PowerState: state, PowerStateSince: &metav1.Time{Time: noon.Add(-before)}}}}
	conditions.Set(&c.Status.Conditions, 1, v1alpha1.ConditionHibernating, believed, v1alpha1.ReasonHibernating, "")
	return c
}

// TestAutomatic checks the automatic silences of the hub, and their ends after noon.
func TestAutomatic(t *testing.T) {
	rollout := v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "tools", Name: "echo-2"}}
	rollout.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "canary", Deadline: &metav1.Duration{Duration: time.Hour}}}
	since, removed := metav1.NewTime(noon.Add(-time.Hour)), metav1.NewTime(noon.Add(-2*time.Hour))
	leaving := v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", DeletionTimestamp: &removed}}
	for name, test := range map[string]struct {
		install v1alpha1.OperatorInstall
		cluster v1alpha1.FleetCluster
		want    []string
	}{
		"nothing happens":    {install: install("tools", "echo", "a")},
		"upgrade":            {install: install("tools", "echo", "a", admitted(time.Minute)), want: []string{"tools upgrade [echo] [a] 59m0s"}},
		"upgrade succeeded":  {install: install("tools", "echo", "a", admitted(20*time.Minute), succeeded(time.Minute)), want: []string{"tools upgrade [echo] [a] 4m0s"}},
		"a while ago":        {install: install("tools", "echo", "a", admitted(20*time.Minute), succeeded(6*time.Minute))},
		"beyond deadline":    {install: install("tools", "echo", "a", admitted(61*time.Minute))},
		"unknown rollout":    {install: install("payments", "echo", "a", admitted(time.Minute)), want: []string{"payments upgrade [echo] [a] 29m0s"}},
		"first installation": {install: install("tools", "echo", "a", admitted(time.Minute), firstInstallation)},
		"veto of all":        {install("tools", "echo", "a"), vetoed(v1alpha1.ClusterVeto{Since: since}), []string{"tools veto [echo] [a] 23h0m0s"}},
		"veto until": {install("tools", "echo", "a"), vetoed(v1alpha1.ClusterVeto{Since: since, Until: &metav1.Time{
			Time: noon.Add(time.Minute)}}), []string{"tools veto [echo] [a] 1m0s"}},
		"veto of another operator": {install: install("tools", "echo", "a"), cluster: vetoed(v1alpha1.ClusterVeto{Since: since,
			Operators: []string{"db"}})},
		"veto elsewhere": {install: install("tools", "echo", "b"), cluster: vetoed(v1alpha1.ClusterVeto{Since: since})},
		"a veto for days": {install: install("tools", "echo", "a"), cluster: vetoed(v1alpha1.ClusterVeto{
			Since: metav1.NewTime(noon.Add(-25 * time.Hour))})},
		"hibernation": {install("tools", "echo", "b"), powered(v1alpha1.PowerHibernating, time.Hour, true), []string{
			"bellwether-system hibernation [] [a] 23h0m0s"}},
		"it should hibernate, and reported": {install: install("tools", "echo", "b"),
			cluster: powered(v1alpha1.PowerHibernating, time.Hour, false)},
		"it is stopped": {install("tools", "echo", "b"), powered(v1alpha1.PowerStopping, 20*time.Minute, true), []string{
			"bellwether-system hibernation [] [a] 10m0s"}},
		"it resumes": {install("tools", "echo", "b"), powered(v1alpha1.PowerResuming, time.Minute, true), []string{
			"bellwether-system hibernation [] [a] 29m0s"}},
		"it resumes, and the time of that is over": {install: install("tools", "echo", "b"),
			cluster: powered(v1alpha1.PowerResuming, 30*time.Minute, true)},
		"it resumes for too long": {install: install("tools", "echo", "b"),
			cluster: powered(v1alpha1.PowerResuming, time.Hour, false)},
		"it runs": {install: install("tools", "echo", "b"), cluster: powered(v1alpha1.PowerRunning, time.Hour, false)},
		"removal": {install("tools", "echo", "b"), leaving, []string{"bellwether-system removal [] [a] 22h0m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := silences.BuildAutomatic(
				silences.Fleet{Covers: holds.VetoCovers, Now: noon, Namespace: hub, Max: silences.DefaultMax,
					Clusters: []v1alpha1.FleetCluster{test.cluster}, Installs: []v1alpha1.OperatorInstall{test.install},
					Rollouts: []v1alpha1.OperatorRollout{rollout}},
			)
			var short []string
			for _, s := range got {
				short = append(short, fmt.Sprint(s.Namespace, " ", s.Labels[v1alpha1.LabelAutomaticSilence], " ",
					s.Spec.Operators, " ", s.Spec.Clusters.Names, " ", s.Spec.End.Sub(noon)))
				if s.Spec.Owner != silences.Owner || s.Spec.Reason == "" || s.Spec.Start.After(noon) {
					t.Errorf("spec %+v", s.Spec)
				}
			}
			if diff := cmp.Diff(test.want, short); diff != "" {
				t.Errorf("silences (-want +got):\n%s", diff)
			}
		})
	}
}

// ofUpgrades are the hub's silences of upgrades, as their names and how many clusters they have.
func ofUpgrades(installs []v1alpha1.OperatorInstall) map[string]int {
	out := map[string]int{}
	for _, s := range silences.BuildAutomatic(silences.Fleet{Covers: holds.VetoCovers, Now: noon, Namespace: hub,
		Max: silences.DefaultMax, Installs: installs}) {
		out[s.Name] = len(s.Spec.Clusters.Names)
	}
	return out
}

// TestUpgradesOfAWaveHaveOneSilence has clusters of a wave that were admitted one after the other.
func TestUpgradesOfAWaveHaveOneSilence(t *testing.T) {
	start := func(before time.Duration) int64 { return noon.Add(-before).Unix() }
	var wave []v1alpha1.OperatorInstall
	for i := range 250 {
		before := 3*time.Minute - time.Duration(i/10)*time.Second
		wave = append(wave, install("tools", "echo", fmt.Sprintf("c-%03d", i), admitted(before)))
	}
	first := map[string]int{
		fmt.Sprintf("upgrade.echo.echo-2.canary.%d", start(3*time.Minute)):                100,
		fmt.Sprintf("upgrade.echo.echo-2.canary.%d", start(3*time.Minute-10*time.Second)): 100,
		fmt.Sprintf("upgrade.echo.echo-2.canary.%d", start(3*time.Minute-20*time.Second)): 50,
	}
	if diff := cmp.Diff(first, ofUpgrades(wave)); diff != "" {
		t.Errorf("silences of 250 clusters (-want +got):\n%s", diff)
	}
	slices.Reverse(wave)
	if diff := cmp.Diff(first, ofUpgrades(wave)); diff != "" {
		t.Errorf("silences in another order (-want +got):\n%s", diff)
	}
	for i := range wave {
		if wave[i].Spec.Cluster < "c-090" {
			succeeded(6 * time.Minute)(&wave[i])
		}
	}
	first[fmt.Sprintf("upgrade.echo.echo-2.canary.%d", start(3*time.Minute))] = 10
	if diff := cmp.Diff(first, ofUpgrades(wave)); diff != "" {
		t.Errorf("silences when some have ended (-want +got):\n%s", diff)
	}
}

// TestUpgradesApart have a silence each.
func TestUpgradesApart(t *testing.T) {
	ofWave := func(wave string) func(*v1alpha1.OperatorInstall) {
		return func(i *v1alpha1.OperatorInstall) { i.Spec.Admission.Wave = wave }
	}
	at := func(before time.Duration) int64 { return noon.Add(-before).Unix() }
	got := ofUpgrades([]v1alpha1.OperatorInstall{
		install("tools", "echo", "a", admitted(9*time.Minute)),
		install("tools", "echo", "b", admitted(4*time.Minute)), // 5 minutes after the first
		install("tools", "echo", "c", admitted(3*time.Minute)),
		install("tools", "echo", "d", admitted(3*time.Minute), ofWave("prod")),
		install("tools", "router", "a", admitted(9*time.Minute)),
		install("tools", "router", "b", admitted(3*time.Minute), firstInstallation),
	})
	want := map[string]int{
		fmt.Sprintf("upgrade.echo.echo-2.canary.%d", at(9*time.Minute)):   2,
		fmt.Sprintf("upgrade.echo.echo-2.canary.%d", at(3*time.Minute)):   1,
		fmt.Sprintf("upgrade.echo.echo-2.prod.%d", at(3*time.Minute)):     1,
		fmt.Sprintf("upgrade.router.echo-2.canary.%d", at(9*time.Minute)): 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("silences (-want +got):\n%s", diff)
	}
	var atOnce []v1alpha1.OperatorInstall
	for i := range 101 {
		atOnce = append(atOnce, install("tools", "echo", fmt.Sprintf("c-%03d", i), admitted(time.Minute)))
	}
	name := fmt.Sprintf("upgrade.echo.echo-2.canary.%d", at(time.Minute))
	if diff := cmp.Diff(map[string]int{name: 100, name + ".2": 1}, ofUpgrades(atOnce)); diff != "" {
		t.Errorf("silences of clusters that were admitted at once (-want +got):\n%s", diff)
	}
}

func TestSuperfluous(t *testing.T) {
	own := silence("tools", "own")
	own.Labels = map[string]string{v1alpha1.LabelAutomaticSilence: silences.CauseVeto}
	kept := *own.DeepCopy()
	kept.Name = "kept"
	got := silences.ListSuperfluous([]v1alpha1.AlertSilence{own, kept, silence("tools", "of-a-person")},
		[]*v1alpha1.AlertSilence{&kept})
	if !slices.Equal(got, []types.NamespacedName{{Namespace: "tools", Name: "own"}}) {
		t.Errorf("superfluous are %v, want tools/own", got)
	}
}

func TestIsReported(t *testing.T) {
	upgrade := silence("tools", "s")
	upgrade.Labels = map[string]string{v1alpha1.LabelAutomaticSilence: silences.CauseUpgrade}
	ofPerson := silence("tools", "s")
	if !silences.IsReported(&ofPerson, noon) || silences.IsReported(&upgrade, noon.Add(14*time.Minute)) ||
		!silences.IsReported(&upgrade, noon.Add(15*time.Minute)) {
		t.Error("pages hidden by an upgrade are told of after 15 minutes, others at once")
	}
}
