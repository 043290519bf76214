/** WireGuard in a network namespace without a kernel that has it: wireguard-go, which programs use by the same `wg`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { command, inSpace } from './machine-commands.ts'
import { skipWithout } from './missing-parts.ts'
import { whyNoRules } from './own-space.ts'
import { eventually } from './wait.ts'

export type WireguardGo = {
  /** The path of a program that runs `wg` for it. */
  readonly tool: string
  /** The folder of that program, for a PATH. */
  readonly folder: string
  /** Another process in place of the one that has ended with its interface. */
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

/**
 * The interface `bramble-wg` in this network namespace; it and the program end with the test, and each other. Its socket is in a file that
 * has the name of the interface: a mount namespace for each keeps them apart.
 */
export async function startWireguardGo(t: Ending, space: string): Promise<WireguardGo> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-wireguard-'))
  const script = 'mkdir -p /run/wireguard && mount -t tmpfs none /run/wireguard && exec wireguard-go -f bramble-wg'
  const line = inSpace(space, 'unshare', '--mount', '--propagation', 'private', 'sh', '-c', script)
  const tool = join(folder, 'wg')
  let program: ChildProcess | undefined
  const start = async () => {
    program = spawn('setpriv', ['--pdeathsig', 'KILL', ...line], { stdio: 'ignore' })
    const inside = `nsenter --mount=/proc/${program.pid}/ns/mnt --net=/run/netns/${space}`
    await writeFile(tool, `#!/bin/sh\nexec ${inside} /usr/bin/wg "$@"\n`)
    await chmod(tool, 0o755)
    await eventually('wireguard-go answers', async () => (await command(tool, ['show', 'bramble-wg'])).code === 0)
  }
  t.teardown(async () => {
    program?.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  })
  await start()
  return {
    ...{ tool, folder },
    async again() {
      program?.kill('SIGKILL')
      await start()
    },
  }
}
