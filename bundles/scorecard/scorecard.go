// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scorecard compares the capability level that an operator claims with what its bundle shows.
//
// Its input is a bundle as read, its output a card with the evidence for each level, and pages and pictures of that
// card. The levels are those of the Operator Framework,
// https://sdk.operatorframework.io/docs/overview/operator-capabilities/. A bundle shows only what is written in it, in
// CRDs, permissions and manifests, so the card shows only what follows from the bundle: an operator may do things that
// its bundle does not show, and show things that it does badly.
package scorecard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Level is a capability level, 1 to 5; 0 is none.
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

var names = []string{"None", "Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"}

// String is the level's name, as the annotation capabilities has it.
func (l Level) String() string { return names[l] }

// MarshalText makes JSON show the name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Means is what users may expect at a level, in a sentence.
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

// ParseLevel reads the annotation capabilities; None for anything else.
func ParseLevel(text string) Level {
	i := slices.IndexFunc(names[1:], func(name string) bool { return strings.EqualFold(name, strings.TrimSpace(text)) })
	return Level(i + 1)
}

// Signal is one thing that a bundle can show.
type Signal struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Required signals are those without which the level is not shown.
	Required bool `json:"required"`
	// Evidence is where it is seen, such as a CRD's field; empty means it is not.
	Evidence []string `json:"evidence,omitempty"`
	// Advice is how to show it.
	Advice string `json:"advice"`
}

// Found reports whether the bundle shows it.
func (s Signal) Found() bool { return len(s.Evidence) > 0 }

// LevelCard is what the bundle shows of one level.
type LevelCard struct {
	Level Level `json:"level"`
	// Shown means that all required signals are there.
	Shown   bool     `json:"shown"`
	Signals []Signal `json:"signals"`
}

// Count returns how many signals are there, and how many there could be.
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
	// Claim is the text of the annotation capabilities; Claimed the level that it means.
	Claim   string `json:"claim,omitempty"`
	Claimed Level  `json:"claimed"`
	// Shown is the highest level that the bundle shows together with all levels below.
	Shown  Level       `json:"shown"`
	Levels []LevelCard `json:"levels"`
}

// Score reads the card off a bundle.
func Score(b *bundles.Bundle) Card {
	claim := b.CSV.Annotations["capabilities"]
	c := Card{
		Name: b.Name, Package: b.Package, DisplayName: b.CSV.Spec.DisplayName, Provider: b.CSV.Spec.Provider.Name,
		Version: b.Version.String(),
		Claim:   claim, Claimed: ParseLevel(claim),
	}
	s := survey(b)
	for level, checks := range checks() {
		card := LevelCard{Level: Level(level + 1), Shown: true}
		for _, check := range checks {
			signal := Signal{ID: check.id, Title: check.title, Required: check.required, Advice: check.advice,
				Evidence: check.find(s)}
			card.Shown = card.Shown && (signal.Found() || !signal.Required)
			card.Signals = append(card.Signals, signal)
		}
		if card.Shown && c.Shown == Level(level) {
			c.Shown = card.Level
		}
		c.Levels = append(c.Levels, card)
	}
	return c
}

// Verdict is the card in a sentence.
func (c Card) Verdict() string {
	switch {
	case c.Claim != "" && c.Claimed == None:
		return fmt.Sprintf("It claims %q, which is no capability level; its bundle shows %s.", c.Claim, c.shown())
	case c.Claimed == None:
		return fmt.Sprintf("It claims no capability level; its bundle shows %s.", c.shown())
	case c.Claimed > c.Shown:
		return fmt.Sprintf("It claims %s, but its bundle shows %s.", c.Claimed, c.shown())
	case c.Claimed < c.Shown:
		return fmt.Sprintf("It claims %s, and its bundle shows more: %s.", c.Claimed, c.shown())
	default:
		return fmt.Sprintf("It claims %s, and its bundle shows it.", c.Claimed)
	}
}

func (c Card) shown() string {
	if c.Shown == None {
		return "not even " + BasicInstall.String()
	}
	return c.Shown.String()
}

// Next are the signals that are missing for the level above the one that is shown, the required ones first; nothing
// above Auto Pilot.
func (c Card) Next() []Signal {
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
