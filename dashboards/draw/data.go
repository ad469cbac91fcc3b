// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"embed"
	"encoding/json"
	"fmt"
)

// Data is what the queries of a dashboard returned in a run, which the testbed
// recorded.
type Data struct {
	// Minutes is how long the run took that the panels show.
	Minutes float64 `json:"minutes"`
	// Queries are by the title of their panel and their letter.
	Queries map[string]map[string]Answer `json:"queries"`
}

// Answer is what one query returned.
type Answer struct {
	// Expr is the query as the dashboard had it. One that was changed since was not
	// answered.
	Expr   string   `json:"expr"`
	Series []Series `json:"series,omitempty"`
}

// Series is one of an answer. An instant query has one value, another one a value
// for each step, without one where there was none.
type Series struct {
	Labels map[string]string `json:"labels,omitempty"`
	Values []*float64        `json:"values"`
}

//go:embed data/*.json
var recorded embed.FS

// Recorded returns what was recorded for the dashboard with a UID.
func Recorded(uid string) (Data, error) {
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

// latest is the last value that there was.
func (s Series) latest() (float64, bool) {
	for i := len(s.Values) - 1; i >= 0; i-- {
		if v := s.Values[i]; v != nil {
			return *v, true
		}
	}
	return 0, false
}
