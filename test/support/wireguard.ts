/** WireGuard in a network namespace: of the kernel where it has it, else wireguard-go, which programs use by the same `wg`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { command, commandOrThrow, inSpace } from './machine-commands.ts'
import { skipWithout } from './missing-parts.ts'
import { whyNoRules } from './own-space.ts'
import { eventually } from './wait.ts'

export type Wireguard = {
  /** The path of a program that runs `wg` there. */
  readonly tool: string
  /** The folder of that program, for a PATH. */
  readonly folder: string
  /**
   * Starts wireguard-go again, for the process that ended with its interface. The agent creates the kernel's interface
   * again by itself.
   */
  again(): Promise<void>
}

type Ending = { teardown(end: () => Promise<unknown>): unknown }

/** For `test(name, { skip: whyNoWireguard() }, …)`. Throws where a part is missing without an opt-out. */
export function whyNoWireguard(): string | false {
  return (
    whyNoRules() ||
    skipWithout('wireguard-go', existsSync('/usr/bin/wireguard-go')) ||
    skipWithout('wireguard-tools', existsSync('/usr/bin/wg'))
  )
}

/** Where the kernel has it, the agent makes the interface `bramble-wg` by itself. */
export async function startWireguard(t: Ending, space: string): Promise<Wireguard> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-wireguard-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const tool = join(folder, 'wg')
  const enterBy = async (...options: readonly string[]) => {
    const inside = ['nsenter', ...options, `--net=/run/netns/${space}`].join(' ')
    await writeFile(tool, `#!/bin/sh\nexec ${inside} /usr/bin/wg "$@"\n`, { mode: 0o755 })
  }
  if (!(await kernelHasWireguard(space)))
    return { tool, folder, again: await startWireguardGo(t, space, tool, enterBy) }
  await enterBy()
  return { tool, folder, again: async () => undefined }
}

async function kernelHasWireguard(space: string): Promise<boolean> {
  const [file = '', ...words] = inSpace(space, 'ip', 'link', 'add', 'bramble-try', 'type', 'wireguard')
  if ((await command(file, words)).code !== 0) return false
  await commandOrThrow('ip', ['-n', space, 'link', 'delete', 'bramble-try'])
  return true
}

/**
 * The interface `bramble-wg`; it and the program end with the test, and each other. Its socket is in a file that has the name of the interface:
 * a mount namespace for each keeps them apart. Gives how to start another.
 */
async function startWireguardGo(
  t: Ending,
  space: string,
  tool: string,
  enterBy: (...options: readonly string[]) => Promise<void>,
): Promise<() => Promise<void>> {
  const script = 'mkdir -p /run/wireguard && mount -t tmpfs none /run/wireguard && exec wireguard-go -f bramble-wg'
  const line = inSpace(space, 'unshare', '--mount', '--propagation', 'private', 'sh', '-c', script)
  let program: ChildProcess | undefined
  const start = async () => {
    program = spawn('setpriv', ['--pdeathsig', 'KILL', ...line], { stdio: 'ignore' })
    await enterBy(`--mount=/proc/${program.pid}/ns/mnt`)
    await eventually('wireguard-go answers', async () => (await command(tool, ['show', 'bramble-wg'])).code === 0)
  }
  t.teardown(async () => program?.kill('SIGKILL'))
  await start()
  return async () => {
    program?.kill('SIGKILL')
    await start()
  }
}
