// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"embed"
	"encoding/json"
	"fmt"
)

// Data has the results of a dashboard's queries that the testbed recorded in a run.
type Data struct {
	// Minutes is the length of the time range that the panels show.
	Minutes float64 `json:"minutes"`
	// Queries has the results by the title of the panel and the letter of the query.
	Queries map[string]map[string]Answer `json:"queries"`
}

// Answer is the result of one query.
type Answer struct {
	// Expr is the query at the time of the recording. If the dashboard has another query
	// now, there is no result for it.
	Expr   string   `json:"expr"`
	Series []Series `json:"series,omitempty"`
}

// Series is one series of a result. An instant query has one value. A range query has a value for each
// step; nil if the step has no value.
type Series struct {
	Labels map[string]string `json:"labels,omitempty"`
	Values []*float64        `json:"values"`
}

//go:embed data/*.json
var recorded embed.FS

// LoadRecorded returns the recorded data of the dashboard with a UID.
func LoadRecorded(uid string) (Data, error) {
	var out Data
	text, err := recorded.ReadFile("data/" + uid + ".json")
	if err != nil {
		return out, fmt.Errorf("read data of dashboard %s: %w", uid, err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("read data of dashboard %s: %w", uid, err)
	}
	return out, nil
}

// findLatest returns the last value of the series; false if it has none.
func (s Series) findLatest() (float64, bool) {
	for i := len(s.Values) - 1; i >= 0; i-- {
		if v := s.Values[i]; v != nil {
			return *v, true
		}
	}
	return 0, false
}
