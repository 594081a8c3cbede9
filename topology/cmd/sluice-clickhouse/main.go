// Command sluice-clickhouse is ClickHouse for one machine.
package main

import (
	"os"

	"github.com/sluice-rl/sluice/topology/embedded/clickhouse"
	"github.com/sluice-rl/sluice/topology/embedded/clickhouse/libchdb"
)

func main() {
	open := func(path string) (clickhouse.Engine, error) { return libchdb.Open(path) }
	os.Exit(clickhouse.Main(open))
}
