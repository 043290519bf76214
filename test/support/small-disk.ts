/** A filesystem of its own for a test, as a card would be. */
import { execFile } from 'node:child_process'
import { mkdir, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Ending } from './dockerd.ts'
import { temporaryFolder } from './fleet.ts'

const run = promisify(execFile)

/** Where it is mounted; unmounted at the end. Without `inodes` it has as many as its size asks for, and a journal. */
export async function smallDisk(t: Ending, mebibytes: number, inodes?: number): Promise<string> {
  const folder = await temporaryFolder({ teardown: (end) => void t.teardown(async () => void (await end())) })
  const [file, mount] = [join(folder, 'disk'), join(folder, 'mount')]
  await writeFile(file, '')
  await truncate(file, mebibytes * 2 ** 20)
  await mkdir(mount)
  const few = inodes === undefined ? [] : ['-N', String(inodes), '-O', '^has_journal']
  await run('mkfs.ext4', ['-q', '-F', '-m', '0', ...few, file])
  await run('mount', ['-o', 'loop', file, mount])
  t.teardown(async () => {
    await run('umount', ['--lazy', mount])
  })
  return mount
}
