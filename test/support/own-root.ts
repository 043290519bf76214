/** The files of this host as a machine has them that is a network namespace, for `--root` of an agent. */
import { mkdir, mkdtemp, readdir, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Teardown } from './fleet.ts'
import { command, commandOrThrow, inSpace } from './machine-commands.ts'

/** In /sys/class/net are the interfaces of the namespace that has mounted it: here those of `space`. Gone when the test ends. */
export async function ownRoot(t: Teardown, space: string): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'bramble-root-'))
  const links = join(root, 'links')
  t.teardown(async () => {
    await command('umount', ['--lazy', links])
    await command('rm', ['--recursive', '--one-file-system', root])
  })
  await mkdir(links)
  const [file = '', ...args] = inSpace(space, 'mount', '-t', 'sysfs', 'none', links)
  await commandOrThrow(file, args)
  await linkAll(root, '/', 'sys')
  await linkAll(join(root, 'sys'), '/sys', 'class')
  await linkAll(join(root, 'sys/class'), '/sys/class', 'net')
  await symlink(join(links, 'class/net'), join(root, 'sys/class/net'))
  return root
}

/** All of a folder but one. */
async function linkAll(into: string, from: string, but: string): Promise<void> {
  await mkdir(into, { recursive: true })
  for (const name of await readdir(from)) if (name !== but) await symlink(join(from, name), join(into, name))
}
