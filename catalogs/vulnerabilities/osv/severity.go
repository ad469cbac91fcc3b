// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package osv

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

// Severity is how bad a vulnerability is: the qualitative rating of its CVSS score, or what the database says in words.
type Severity string

// Severities. Unknown is that of a vulnerability that nobody has rated.
const (
	Critical Severity = "critical"
	High     Severity = "high"
	Medium   Severity = "medium"
	Low      Severity = "low"
	None     Severity = "none"
	Unknown  Severity = "unknown"
)

// Severities are all, the worst first. What is not rated may be anything.
func Severities() []Severity { return []Severity{Critical, High, Medium, Low, None, Unknown} }

// Compare orders severities, the worst first.
func (s Severity) Compare(o Severity) int {
	return slices.Index(Severities(), s) - slices.Index(Severities(), o)
}

// rating of a score by CVSS 3 and 4.
func rating(score float64) Severity {
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

// score computes the base score of a CVSS vector of any version; false where it is not valid.
func score(vector string) (float64, bool) {
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

// words are ratings of databases.
var words = map[string]Severity{
	"CRITICAL": Critical, "HIGH": High, "IMPORTANT": High, "MODERATE": Medium, "MEDIUM": Medium, "LOW": Low,
	"NEGLIGIBLE": Low, "UNIMPORTANT": Low, "NONE": None,
}

// rate returns the worst severity that a record has for a package, and its CVSS score where it has one.
func rate(v *osvschema.Vulnerability, a *osvschema.Affected) (Severity, float64) {
	worst, best := Unknown, -1.0
	lists := slices.Concat(a.GetSeverity(), v.GetSeverity())
	for _, s := range lists {
		if number, ok := score(s.GetScore()); ok {
			best = max(best, number)
		} else if word, ok := words[strings.ToUpper(s.GetScore())]; ok && word.Compare(worst) < 0 {
			worst = word
		}
	}
	if best >= 0 {
		return rating(best), best
	}
	for _, s := range []*structpb.Struct{a.GetEcosystemSpecific(), a.GetDatabaseSpecific(), v.GetDatabaseSpecific()} {
		word, ok := words[strings.ToUpper(s.GetFields()["severity"].GetStringValue())]
		if ok && word.Compare(worst) < 0 {
			worst = word
		}
	}
	return worst, 0
}
