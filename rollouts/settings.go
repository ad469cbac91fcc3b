// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// The API's limits for the changes of a VersionHold.
const (
	maxChanges = 5
	maxChange  = 128
)

// SettingsChanges describes the differences between the settings of two releases, one text for each setting, sorted. It
// returns nil if their SettingsHash is the same. The texts never contain the value of an environment variable.
func SettingsChanges(before, after v1alpha1.Release) []string {
	previous, current := before.Settings(), after.Settings()
	removed, added := subtractSettings(previous, current), subtractSettings(current, previous)
	var changes []string
	for _, s := range added {
		i := slices.IndexFunc(removed, func(o v1alpha1.Setting) bool { return o.Name == s.Name })
		if i < 0 {
			changes = append(changes, s.Name+" is added"+prefixColon(s.Text))
			continue
		}
		changes = append(changes, describeChangedSetting(removed[i], s))
		removed = slices.Delete(removed, i, i+1)
	}
	for _, s := range removed {
		changes = append(changes, s.Name+" is removed"+prefixColon(s.Text))
	}
	slices.Sort(changes)
	return changes
}

// NewHold returns a hold of the release of a rollout, without a reason and a time. The hold covers the version. If
// before has the same version, the hold covers only the settings, or only exactly this release if no setting differs,
// as after a change of the channel alone.
func NewHold(rollout *v1alpha1.OperatorRollout, previous v1alpha1.Release) v1alpha1.VersionHold {
	held := rollout.Spec.Release
	h := v1alpha1.VersionHold{Version: held.Version, Rollout: rollout.Name}
	if previous.Version == held.Version {
		h.Release, h.Changes = held.Hash(), listHoldChanges(previous, held)
		if len(SettingsChanges(previous, held)) > 0 {
			h.Settings = held.SettingsHash()
		}
	}
	return h
}

// listHoldChanges returns the SettingsChanges in the form of a VersionHold. If no setting differs, it describes the
// other difference.
func listHoldChanges(previous, current v1alpha1.Release) []string {
	changes := SettingsChanges(previous, current)
	switch {
	case len(changes) > 0: // the settings differ
	case previous.Channel != current.Channel:
		changes = []string{fmt.Sprintf("the channel is %s, was %s", current.Channel, previous.Channel)}
	case previous.Bundle != current.Bundle:
		changes = []string{fmt.Sprintf("the bundle is %s, was %s", current.Bundle, previous.Bundle)}
	default:
		changes = []string{"the settings mean the same and are written differently, for example in another order"}
	}
	if more := len(changes) - maxChanges; more > 0 {
		changes = append(changes[:maxChanges-1], fmt.Sprintf("%d more changes", more+1))
	}
	for i := range changes {
		changes[i] = phrase.Truncate(phrase.OneLine(changes[i]), maxChange)
	}
	return changes
}

// describeChangedSetting says how a setting changed.
func describeChangedSetting(previous, current v1alpha1.Setting) string {
	if previous.Text == current.Text { // the value might be secret, so the text has no value
		return current.Name + " has another value"
	}
	return fmt.Sprintf("%s is %s, was %s", current.Name, current.Text, previous.Text)
}

// subtractSettings returns the settings of list that excluded does not have with the same value.
func subtractSettings(list, excluded []v1alpha1.Setting) []v1alpha1.Setting {
	return slices.DeleteFunc(slices.Clone(list), func(s v1alpha1.Setting) bool {
		return slices.ContainsFunc(excluded,
			func(o v1alpha1.Setting) bool { return o.Name == s.Name && o.Value == s.Value })
	})
}
