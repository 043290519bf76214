/** The options of a benchmark, which reads them as the programs of Bramble do. */

import type { Options } from '../../daemon/process/command.ts'
import { type PrintText, printText, readArguments, refuse, type Values } from '../../daemon/process/command-line.ts'

export type Benchmark<O extends Options = Options> = {
  /** As it is typed: `node dist/bench/fleet.js`. */
  readonly name: string
  /** What it measures, what it prints and what it needs: the help above the options. */
  readonly text: string
  readonly options: O
}

/** The values that were typed. Ends the process where help was asked for, and where they are wrong. */
export function benchmarkOptions<const O extends Options>(row: Benchmark<O>): Values<O> {
  const read = readArguments({ ...row, about: row.text, forms: { '': '' } }, process.argv.slice(2))
  return read.want === 'act' ? read.values : end(read)
}

/** Ends the process for what only the benchmark itself can find wrong; `why` is without a full stop. */
export function rejectOptions(row: Benchmark, why: string): never {
  return end(refuse(row, why))
}

function end(text: PrintText): never {
  const stdout = (line: string) => void process.stdout.write(line)
  const stderr = (line: string) => void process.stderr.write(line)
  process.exit(printText(text, { stdout, stderr }))
}
