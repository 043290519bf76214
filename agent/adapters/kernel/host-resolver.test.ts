import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { readHosts } from './host-resolver.ts'

test('the hosts file of the machine is read, unless it is missing or longer than 64 KiB', async (t) => {
  const root = t.testdir()
  t.equal(await readHosts(root), undefined)
  await mkdir(join(root, 'etc'))
  await writeFile(join(root, 'etc/hosts'), '127.0.0.1 localhost\n')
  t.equal(await readHosts(root), '127.0.0.1 localhost\n')
  await writeFile(join(root, 'etc/hosts'), '#'.repeat(65_536))
  t.equal((await readHosts(root))?.length, 65_536)
  await writeFile(join(root, 'etc/hosts'), '#'.repeat(65_537))
  t.equal(await readHosts(root), undefined)
})
