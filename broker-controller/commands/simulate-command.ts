/**
 * `bramble-controller simulate`: what a story does to a fleet. The simulator is a program of its own in a file beside the controller's:
 * it has the agent in it, and no controller that runs loads it.
 */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../daemon/clock.ts'
import { printText, readArguments } from '../../daemon/process/command-line.ts'
import { exitCode } from '../../daemon/process/exit-code.ts'
import { simulateRow } from './command-table.ts'
import type { CommandOutput } from './run-command.ts'

/** `below`: workloads have fewer pods than they want at the end. `refused`: the file cannot be used. The problem is printed. */
export type SimulateFile = (
  wanted: { readonly path: string; readonly seed: number; readonly output: 'text' | 'json' },
  needs: CommandOutput & { readonly nowMs: () => number },
) => Promise<'fine' | 'below' | 'refused' | 'failed'>

/** What the simulation came to. A wrong command line has the code of all commands. */
const exitCodes = { fine: exitCode.fine, below: 1, refused: exitCode.configuration, failed: 3 } as const

/** `argv`: what follows `simulate`. `load`: the program. The exit code. */
export async function simulateCommand(
  argv: readonly string[],
  output: CommandOutput,
  load: () => Promise<SimulateFile> = loadSimulator,
): Promise<number> {
  const read = readArguments(simulateRow, argv)
  if (read.want !== 'act') return printText(read, output)
  const { seed = 1, output: format } = read.values
  const [path = ''] = read.args
  let simulateFile: SimulateFile
  try {
    simulateFile = await load()
  } catch (error) {
    output.stderr(`${error instanceof Error ? error.message : String(error)}\n`)
    return exitCodes.failed
  }
  const needs = { ...output, nowMs: () => systemClock.monotonicMs() }
  return exitCodes[await simulateFile({ path, seed, output: format }, needs)]
}

/** Beside the bundle of the controller. */
async function loadSimulator(): Promise<SimulateFile> {
  const file = new URL('./bramble-simulator.mjs', import.meta.url)
  if (!existsSync(file))
    throw new Error(
      `The simulator is not there: ${fileURLToPath(file)} is missing. Install the package bramble-controller again, or run: npm run build`,
    )
  const { simulateFile } = (await import(file.href)) as { readonly simulateFile: SimulateFile }
  return simulateFile
}
