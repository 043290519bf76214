/** The Debian root all test machines start from, and what tests that died left behind of theirs. */
import { existsSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { command, commandOrThrow } from './machine-commands.ts'
import { removeControlGroups } from './machine-control-groups.ts'

const repository = fileURLToPath(new URL('../../../', import.meta.url))
const needed = [
  ['systemd-nspawn', 'systemd-container'],
  ['mmdebstrap', 'mmdebstrap'],
  ['nsenter', 'util-linux'],
  ['ip', 'iproute2'],
  ['busybox', 'busybox-static'],
] as const

/** Debian 12, or another `release`. Built at the first call on this machine, which takes half a minute. Throws, naming what to install, when it cannot be. */
export async function machineRoot(release?: string): Promise<string> {
  if (process.getuid?.() !== 0) throw new Error('Test machines need root')
  for (const [program, debianPackage] of needed) {
    const found = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'].some((folder) => existsSync(join(folder, program)))
    if (!found) throw new Error(`Test machines need ${program}: apt-get install ${debianPackage}`)
  }
  const script = join(repository, 'test/machines/build-root.sh')
  const variables = release === undefined ? [] : [`BRAMBLE_TEST_RELEASE=${release}`]
  return (await commandOrThrow('env', [...variables, script], { withinMs: 10 * 60_000 })).trim()
}

/** A killed test's machine has ended with it; its folder, its network and its control groups are still there. */
export async function sweepMachines(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const [, id] = /^(bm[0-9a-f]{8})-/.exec(name) ?? []
    if (id === undefined) continue
    const owner = await readFile(join(tmpdir(), name, 'owner'), 'utf8').catch(() => '')
    if (owner === '' || existsSync(`/proc/${owner.trim()}`)) continue
    await command('ip', ['link', 'delete', id])
    await command('ip', ['netns', 'delete', id])
    await removeControlGroups(id)
    await rm(join(tmpdir(), name), { recursive: true, force: true })
  }
}
