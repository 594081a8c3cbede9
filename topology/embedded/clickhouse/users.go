package clickhouse

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
)

// passwords of the users; stop's is of one start.
type passwords struct{ writer, reader, pages, stop string }

type xmlUser struct {
	XMLName  xml.Name
	Hash     string   `xml:"password_sha256_hex,omitempty"`
	Password *string  `xml:"password"`
	Networks string   `xml:"networks>ip"`
	Profile  string   `xml:"profile"`
	Quota    string   `xml:"quota"`
	Grants   []string `xml:"grants>query"`
}

type xmlProfile struct {
	XMLName     xml.Name
	ReadOnly    int          `xml:"readonly"`
	Settings    []xmlSetting `xml:"_"`
	Constraints []xmlBounds  `xml:"constraints>_"`
}

type xmlSetting struct {
	XMLName xml.Name
	Value   int64 `xml:",chardata"`
}

type xmlBounds struct {
	XMLName xml.Name
	Min     int64 `xml:"min"`
	Max     int64 `xml:"max"`
}

type xmlUsers struct {
	XMLName  xml.Name     `xml:"clickhouse"`
	Profiles []xmlProfile `xml:"profiles>_"`
	Quota    struct{}     `xml:"quotas>default"`
	Users    []xmlUser    `xml:"users>_"`
}

// pagesLimits are what a query of the pages may take, which no query can raise. 0 would
// mean without limit, so the least is 1.
var pagesLimits = []struct {
	setting string
	most    int64
}{
	{"max_execution_time", 30}, // seconds
	{"max_memory_usage", 2 << 30},
	{"max_memory_usage_for_user", 3 << 30},
	{"max_threads", 2},
	{"max_result_rows", 1_000_000},
	{"max_result_bytes", 256 << 20},
	{"max_concurrent_queries_for_user", 8},
}

// pagesPriority: queries of others, which have 0, go first.
const pagesPriority = 10

func pagesProfile() xmlProfile {
	p := xmlProfile{XMLName: xml.Name{Local: PagesUser}, ReadOnly: 2}
	add := func(name string, value, least, most int64) {
		p.Settings = append(p.Settings, xmlSetting{xml.Name{Local: name}, value})
		p.Constraints = append(p.Constraints, xmlBounds{xml.Name{Local: name}, least, most})
	}
	for _, l := range pagesLimits {
		add(l.setting, l.most, 1, l.most)
	}
	add("priority", pagesPriority, pagesPriority, pagesPriority)
	return p
}

func usersXML(p passwords, pagesDatabase string) ([]byte, error) {
	user := func(name, password, profile string, grants ...string) xmlUser {
		u := xmlUser{XMLName: xml.Name{Local: name}, Networks: "127.0.0.1", Profile: profile, Quota: "default", Grants: grants}
		if password == "" {
			u.Password = new(string)
			return u
		}
		sum := sha256.Sum256([]byte(password))
		u.Hash = hex.EncodeToString(sum[:])
		return u
	}
	v := xmlUsers{
		Profiles: []xmlProfile{
			{XMLName: xml.Name{Local: "default"}},
			// 2: reads only, and settings of a query may be changed, which clients do.
			{XMLName: xml.Name{Local: "readonly"}, ReadOnly: 2},
			pagesProfile(),
		},
		Users: []xmlUser{
			user("default", "", "default", "GRANT SYSTEM LISTEN ON *.*", "GRANT SELECT ON system.numbers"),
			user(WriterUser, p.writer, "default",
				"GRANT SELECT, INSERT, SHOW, CREATE DATABASE, CREATE TABLE, CREATE VIEW, DROP DATABASE, DROP TABLE, DROP VIEW, ALTER TABLE, ALTER VIEW, TRUNCATE, OPTIMIZE ON *.*",
				"GRANT TABLE ENGINE ON Atomic", "GRANT TABLE ENGINE ON MergeTree", "GRANT TABLE ENGINE ON ReplacingMergeTree"),
			user(ReaderUser, p.reader, "readonly", "GRANT SELECT, SHOW ON *.*"),
			user(PagesUser, p.pages, PagesUser, "GRANT SELECT ON "+pagesDatabase+".*"),
			user(stopUser, p.stop, "default", "GRANT KILL QUERY ON *.*", "GRANT SELECT ON system.processes"),
		},
	}
	b, err := xml.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", usersName, err)
	}
	return append(b, '\n'), nil
}
