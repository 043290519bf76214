/** Common parts of the controller's commands: arguments in, text and exit status out. */

import type { Command, Forms, Options } from '../../daemon/process/command.ts'
import { type Arguments, printText, readArguments, refuse } from '../../daemon/process/command-line.ts'
import { exitCode } from '../../daemon/process/exit-code.ts'
import { failureText } from './command-failure.ts'

export type CommandOutput = {
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
  readonly signal: AbortSignal
}

/** Prints what `plan` makes of the arguments: what to do, or a sentence on what is wrong with them. Gives the exit status. */
export async function runCommand<const O extends Options, const F extends Forms>(
  command: Command<O, F>,
  argv: readonly string[],
  output: CommandOutput,
  plan: (read: Arguments<O, F>) => string | (() => Promise<string>),
): Promise<number> {
  const read = readArguments(command, argv)
  if (read.want !== 'act') return printText(read, output)
  const planned = plan(read)
  if (typeof planned === 'string') return printText(refuse(command, planned), output)
  try {
    output.stdout(await planned())
    return exitCode.fine
  } catch (error) {
    output.stderr(failureText(error, output.signal))
    return exitCode.failed
  }
}
