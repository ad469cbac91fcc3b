// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"slices"
	"strings"

	"github.com/ossf/osv-schema/bindings/go/osvschema"
	gocvss20 "github.com/pandatix/go-cvss/20"
	gocvss30 "github.com/pandatix/go-cvss/30"
	gocvss31 "github.com/pandatix/go-cvss/31"
	gocvss40 "github.com/pandatix/go-cvss/40"
	"google.golang.org/protobuf/types/known/structpb"
)

// Severity is the severity of a vulnerability: the qualitative rating of its CVSS score, or the rating of
// the database.
type Severity string

// Severities. Unknown is the severity of a vulnerability without a rating.
const (
	Critical Severity = "critical"
	High     Severity = "high"
	Medium   Severity = "medium"
	Low      Severity = "low"
	None     Severity = "none"
	Unknown  Severity = "unknown"
)

// Severities returns all severities, the worst first. Unknown is last, although it can be any severity.
func Severities() []Severity { return []Severity{Critical, High, Medium, Low, None, Unknown} }

// Compare orders severities, the worst first.
func (s Severity) Compare(o Severity) int {
	return slices.Index(Severities(), s) - slices.Index(Severities(), o)
}

// rateScore returns the severity of a score by CVSS 3 and 4.
func rateScore(score float64) Severity {
	switch {
	case score >= 9:
		return Critical
	case score >= 7:
		return High
	case score >= 4:
		return Medium
	case score > 0:
		return Low
	default:
		return None
	}
}

// computeScore returns the base score of a CVSS vector of any version; false if the vector is invalid.
func computeScore(vector string) (float64, bool) {
	switch {
	case strings.HasPrefix(vector, "CVSS:4.0/"):
		v, err := gocvss40.ParseVector(vector)
		if err != nil {
			return 0, false
		}
		return v.Score(), true
	case strings.HasPrefix(vector, "CVSS:3.1/"):
		v, err := gocvss31.ParseVector(vector)
		if err != nil {
			return 0, false
		}
		return v.BaseScore(), true
	case strings.HasPrefix(vector, "CVSS:3.0/"):
		v, err := gocvss30.ParseVector(vector)
		if err != nil {
			return 0, false
		}
		return v.BaseScore(), true
	}
	v, err := gocvss20.ParseVector(vector)
	if err != nil {
		return 0, false
	}
	return v.BaseScore(), true
}

// ratingWords are the ratings that databases use.
var ratingWords = map[string]Severity{
	"CRITICAL": Critical, "HIGH": High, "IMPORTANT": High, "MODERATE": Medium, "MEDIUM": Medium, "LOW": Low,
	"NEGLIGIBLE": Low, "UNIMPORTANT": Low, "NONE": None,
}

// rateRecord returns the severity of a record's highest CVSS score for a package, and that score. Without a score, it
// returns the worst rating in words, or Unknown, and 0.
func rateRecord(v *osvschema.Vulnerability, a *osvschema.Affected) (Severity, float64) {
	worst, highest := Unknown, -1.0
	ratings := slices.Concat(a.GetSeverity(), v.GetSeverity())
	for _, s := range ratings {
		if number, ok := computeScore(s.GetScore()); ok {
			highest = max(highest, number)
		} else if word, ok := ratingWords[strings.ToUpper(s.GetScore())]; ok && word.Compare(worst) < 0 {
			worst = word
		}
	}
	if highest >= 0 {
		return rateScore(highest), highest
	}
	for _, s := range []*structpb.Struct{a.GetEcosystemSpecific(), a.GetDatabaseSpecific(), v.GetDatabaseSpecific()} {
		word, ok := ratingWords[strings.ToUpper(s.GetFields()["severity"].GetStringValue())]
		if ok && word.Compare(worst) < 0 {
			worst = word
		}
	}
	return worst, 0
}
