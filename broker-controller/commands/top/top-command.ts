/** `bramble-controller top`: the fleet live in a terminal. */
import { systemClock } from '../../../daemon/clock.ts'
import { invalidValue } from '../../../daemon/process/command-line.ts'
import { topRow } from '../command-table.ts'
import { type ApiAccess, kubeconfigPlace, readKubeconfig } from '../connection/kubeconfig.ts'
import { type CommandOutput, runCommand } from '../run-command.ts'
import { fleetUpdates } from './fleet-updates.ts'
import { enterTerminal, type TerminalNeeds } from './terminal.ts'
import { topAsLines, topInTerminal } from './top.ts'

export type TopCommandNeeds = CommandOutput & {
  readonly input: TerminalNeeds['input']
  readonly output: TerminalNeeds['output']
  readonly env: { readonly [name: string]: string | undefined }
}

/** `argv`: what follows `top`. The exit code. Never rejects for what was typed or what the API answers. */
export async function topCommand(argv: readonly string[], needs: TopCommandNeeds): Promise<number> {
  return runCommand(topRow, argv, needs, ({ values }) => {
    const { server, watch } = values
    if (server !== undefined && !isServer(server)) return invalidValue('--server', server, 'use https://HOST:PORT')
    const { path, context } = kubeconfigPlace(values.kubeconfig, values['data-dir'])
    const access = async (): Promise<ApiAccess> => {
      const found = await readKubeconfig(path, context)
      return server === undefined ? found : { ...found, url: server }
    }
    return async () => {
      const { url } = await access()
      await show(url, access, watch, needs)
      return ''
    }
  })
}

async function show(
  server: string,
  access: () => Promise<ApiAccess>,
  watches: boolean,
  { input, output, env, signal, stdout }: TopCommandNeeds,
): Promise<void> {
  // Read again for each connection: a certificate may have been renewed.
  const updates = async function* (until: AbortSignal) {
    yield* fleetUpdates(await access(), until)
  }
  const top = { updates, server, clock: systemClock }
  if (input.isTTY && output.isTTY && !watches && env['TERM'] !== 'dumb') {
    const isColoured = (env['NO_COLOR'] ?? '') === ''
    return topInTerminal(top, (listener) => enterTerminal({ input, output, isColoured }, listener), signal)
  }
  const ending = new AbortController()
  const end = () => ending.abort('over')
  signal.addEventListener('abort', end, { once: true })
  output.on('error', end) // the reader of the pipe is gone
  await topAsLines(top, { print: stdout, watches }, ending.signal)
}

function isServer(text: string): boolean {
  return URL.canParse(text) && new URL(text).protocol === 'https:'
}
