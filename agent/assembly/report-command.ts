/** `bramble-agent report`: what this machine is made of. */
import { printText, readArguments } from '../../daemon/process/command-line.ts'
import { exitCode } from '../../daemon/process/exit-code.ts'
import { version } from '../../daemon/process/version.ts'
import { readMachineInventory } from '../adapters/inventory/machine-inventory.ts'
import { readSystem } from '../adapters/kernel/host-inventory.ts'
import { agentDefaults, reportRow } from '../commands/command-table.ts'
import { boardRow } from '../node/inventory/board-report.ts'

type Output = { readonly stdout: (text: string) => void; readonly stderr: (text: string) => void }

/** `argv`: what follows `report`. Gives the exit status. */
export async function reportCommand(argv: readonly string[], output: Output): Promise<number> {
  const read = readArguments(reportRow, argv)
  if (read.want !== 'act') return printText(read, output)
  const { output: format, root = agentDefaults.root } = read.values
  const inventory = await readMachineInventory(root)
  const { osImage, kernelVersion, architecture } = await readSystem(root)
  const system = { osImage, kernelVersion, architecture, version }
  output.stdout(
    format === 'json' ? `${JSON.stringify({ ...system, ...inventory }, null, 2)}\n` : boardRow(inventory, system),
  )
  return exitCode.fine
}
