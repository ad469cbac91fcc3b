// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// The API's limits of the changes of a VersionHold.
const (
	maxChanges = 5
	maxChange  = 128
)

// SettingsChanges says what differs in the settings of two releases, sorted by the name of the setting: nothing where
// their SettingsHash is the same. It never has the value of an environment variable.
func SettingsChanges(before, after v1alpha1.Release) []string {
	was, is := before.Settings(), after.Settings()
	gone, added := without(was, is), without(is, was)
	var changes []string
	for _, s := range added {
		i := slices.IndexFunc(gone, func(o v1alpha1.Setting) bool { return o.Name == s.Name })
		if i < 0 {
			changes = append(changes, s.Name+" is added"+colon(s.Text))
			continue
		}
		changes = append(changes, changed(gone[i], s))
		gone = slices.Delete(gone, i, i+1)
	}
	for _, s := range gone {
		changes = append(changes, s.Name+" is removed"+colon(s.Text))
	}
	slices.Sort(changes)
	return changes
}

// NewHold returns the hold of what a rollout brought, without a reason and a time: of its version, of its settings
// where clusters are taken back to the same version with other ones, or of exactly its release where no setting
// differs, as after a change of the channel alone.
func NewHold(of *v1alpha1.OperatorRollout, before v1alpha1.Release) v1alpha1.VersionHold {
	held := of.Spec.Release
	h := v1alpha1.VersionHold{Version: held.Version, Rollout: of.Name}
	if before.Version == held.Version {
		h.Release, h.Changes = held.Hash(), holdChanges(before, held)
		if len(SettingsChanges(before, held)) > 0 {
			h.Settings = held.SettingsHash()
		}
	}
	return h
}

// holdChanges are the SettingsChanges as a VersionHold has them. Where no setting differs, they say what else does.
func holdChanges(before, after v1alpha1.Release) []string {
	changes := SettingsChanges(before, after)
	switch {
	case len(changes) > 0:
	case before.Channel != after.Channel:
		changes = []string{fmt.Sprintf("the channel is %s, was %s", after.Channel, before.Channel)}
	case before.Bundle != after.Bundle:
		changes = []string{fmt.Sprintf("the bundle is %s, was %s", after.Bundle, before.Bundle)}
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

func changed(was, is v1alpha1.Setting) string {
	if was.Text == is.Text { // it may be secret
		return is.Name + " has another value"
	}
	return fmt.Sprintf("%s is %s, was %s", is.Name, is.Text, was.Text)
}

// without are the settings of a list that another one does not have.
func without(list, other []v1alpha1.Setting) []v1alpha1.Setting {
	return slices.DeleteFunc(slices.Clone(list), func(s v1alpha1.Setting) bool {
		return slices.ContainsFunc(other,
			func(o v1alpha1.Setting) bool { return o.Name == s.Name && o.Value == s.Value })
	})
}
