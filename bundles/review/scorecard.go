// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Level is a capability level from 1 to 5; 0 means none.
type Level int

// The levels.
const (
	None Level = iota
	BasicInstall
	SeamlessUpgrades
	FullLifecycle
	DeepInsights
	AutoPilot
)

var levelNames = []string{"None", "Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"}

// String returns the name of the level, as in the annotation capabilities.
func (l Level) String() string { return levelNames[l] }

// MarshalText returns the name of the level, for JSON.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Means returns a sentence about what users can expect at a level.
func (l Level) Means() string {
	return []string{
		"",
		"It installs, and sets up what it runs through its own API.",
		"It can be upgraded, and upgrades what it runs, without losing anything.",
		"It backs up and restores, scales and fails over.",
		"It shows how it does, with metrics and alerts.",
		"It scales, heals and tunes by itself.",
	}[l]
}

// ParseLevel parses the annotation capabilities. It returns None for any other text.
func ParseLevel(text string) Level {
	i := slices.IndexFunc(levelNames[1:],
		func(name string) bool { return strings.EqualFold(name, strings.TrimSpace(text)) })
	return Level(i + 1)
}

// Signal is one feature for which a bundle can contain evidence.
type Signal struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Required is true if the level is not shown without this signal.
	Required bool `json:"required"`
	// Evidence are the places of the evidence, such as a field of a CRD; empty if there is none.
	Evidence []string `json:"evidence,omitempty"`
	// Advice describes how to add the evidence.
	Advice string `json:"advice"`
}

// Found reports whether the bundle contains evidence.
func (s Signal) Found() bool { return len(s.Evidence) > 0 }

// LevelCard is the result for one level.
type LevelCard struct {
	Level Level `json:"level"`
	// Shown is true if all required signals are found.
	Shown   bool     `json:"shown"`
	Signals []Signal `json:"signals"`
}

// Count returns the number of signals that are found, and the number of all signals.
func (l LevelCard) Count() (found, all int) {
	for _, s := range l.Signals {
		if s.Found() {
			found++
		}
	}
	return found, len(l.Signals)
}

// Card is the result for a bundle.
type Card struct {
	Name        string `json:"name"`
	Package     string `json:"package,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
	Provider    string `json:"provider,omitempty"`
	Version     string `json:"version"`
	// Claim is the text of the annotation capabilities; Claimed is the level in it.
	Claim   string `json:"claim,omitempty"`
	Claimed Level  `json:"claimed"`
	// Shown is the highest level that the bundle shows together with all lower levels.
	Shown  Level       `json:"shown"`
	Levels []LevelCard `json:"levels"`
}

// ScoreBundle returns the card of a bundle.
func ScoreBundle(b *bundles.Bundle) Card {
	claim := b.CSV.Annotations["capabilities"]
	c := Card{
		Name: b.Name, Package: b.Package, DisplayName: b.CSV.Spec.DisplayName, Provider: b.CSV.Spec.Provider.Name,
		Version: b.Version.String(),
		Claim:   claim, Claimed: ParseLevel(claim),
	}
	s := surveyBundle(b)
	for level, checks := range listChecks() {
		card := LevelCard{Level: Level(level + 1), Shown: true}
		for _, check := range checks {
			signal := Signal{ID: check.id, Title: check.title, Required: check.required, Advice: check.advice,
				Evidence: check.find(s)}
			card.Shown = card.Shown && (signal.Found() || !signal.Required)
			card.Signals = append(card.Signals, signal)
		}
		if card.Shown && c.Shown == Level(level) { // all lower levels are shown
			c.Shown = card.Level
		}
		c.Levels = append(c.Levels, card)
	}
	return c
}

// Verdict returns the result in one sentence.
func (c Card) Verdict() string {
	switch {
	case c.Claim != "" && c.Claimed == None:
		return fmt.Sprintf("It claims %q, which is no capability level; its bundle shows %s.", c.Claim, c.formatShown())
	case c.Claimed == None:
		return fmt.Sprintf("It claims no capability level; its bundle shows %s.", c.formatShown())
	case c.Claimed > c.Shown:
		return fmt.Sprintf("It claims %s, but its bundle shows %s.", c.Claimed, c.formatShown())
	case c.Claimed < c.Shown:
		return fmt.Sprintf("It claims %s, and its bundle shows more: %s.", c.Claimed, c.formatShown())
	default:
		return fmt.Sprintf("It claims %s, and its bundle shows it.", c.Claimed)
	}
}

// formatShown returns the name of the shown level for Verdict.
func (c Card) formatShown() string {
	if c.Shown == None {
		return "not even " + BasicInstall.String()
	}
	return c.Shown.String()
}

// ListMissingSignals returns the missing signals of the level above the shown level, the required signals first. It
// returns nil if the shown level is Auto Pilot.
func (c Card) ListMissingSignals() []Signal {
	if c.Shown == AutoPilot {
		return nil
	}
	missing := slices.DeleteFunc(slices.Clone(c.Levels[c.Shown].Signals), Signal.Found)
	slices.SortStableFunc(missing, func(a, b Signal) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		default:
			return 1
		}
	})
	return missing
}
