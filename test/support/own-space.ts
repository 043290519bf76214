/** A network namespace of a test's own: what is changed there, the machine does not notice. */

import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { command, commandOrThrow, inSpace } from './machine-commands.ts'
import { isRoot, skipWithout } from './missing-parts.ts'

export type OwnSpace = {
  readonly name: string
  /** What a program prints there. Rejects when it fails. */
  run(...line: readonly string[]): Promise<string>
  /** The path of a program that runs `tool` there. */
  tool(tool: string): Promise<string>
}

type Ending = { teardown(end: () => Promise<unknown>): unknown }

const inSbin = (name: string) => ['/usr/sbin', '/sbin', '/usr/bin'].some((folder) => existsSync(`${folder}/${name}`))

/** For `test(name, { skip: whyNoRules() }, …)`. Throws where a part is missing without an opt-out. */
export function whyNoRules(): string | false {
  return (
    skipWithout('root', isRoot()) ||
    skipWithout('iproute2', ['ip', 'bridge'].every(inSbin)) ||
    skipWithout('nftables', inSbin('nft')) ||
    skipWithout('iptables', inSbin('iptables'))
  )
}

/** As `whyNoRules`, for tests that remove flows too. */
export function whyNoFlows(): string | false {
  return whyNoRules() || skipWithout('conntrack', inSbin('conntrack'))
}

/** Gone when the test ends. */
export async function ownSpace(t: Ending): Promise<OwnSpace> {
  const name = `bs-${randomBytes(4).toString('hex')}`
  const folder = await mkdtemp(join(tmpdir(), 'bramble-space-'))
  await commandOrThrow('ip', ['netns', 'add', name])
  t.teardown(async () => {
    await command('ip', ['netns', 'delete', name])
    await rm(folder, { recursive: true, force: true })
  })
  await commandOrThrow('ip', ['-n', name, 'link', 'set', 'lo', 'up'])
  return {
    name,
    run(...line) {
      const [file = '', ...args] = inSpace(name, ...line)
      return commandOrThrow(file, args)
    },
    async tool(tool) {
      const path = join(folder, tool)
      await writeFile(path, `#!/bin/sh\nexec ${inSpace(name, tool).join(' ')} "$@"\n`)
      await chmod(path, 0o755)
      return path
    },
  }
}
