// Command sluice-clickhouse is ClickHouse for one machine.
package main

import (
	"os"

	"github.com/sluice-rl/sluice/topology/clickhouseserver"
	"github.com/sluice-rl/sluice/topology/clickhouseserver/libchdb"
)

func main() {
	open := func(path string) (clickhouseserver.Engine, error) { return libchdb.Open(path) }
	os.Exit(clickhouseserver.Main(os.Args[1:], os.Stdout, os.Stderr, open))
}
