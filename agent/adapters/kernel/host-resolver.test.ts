import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { machineServers, readHosts } from './host-resolver.ts'

test('the hosts file of the machine is read, unless it is missing or longer than 64 KiB', async (t) => {
  const root = testFolder(t)
  t.equal(await readHosts(root), undefined)
  await mkdir(join(root, 'etc'))
  await writeFile(join(root, 'etc/hosts'), '127.0.0.1 localhost\n')
  t.equal(await readHosts(root), '127.0.0.1 localhost\n')
  await writeFile(join(root, 'etc/hosts'), '#'.repeat(65_536))
  t.equal((await readHosts(root))?.length, 65_536)
  await writeFile(join(root, 'etc/hosts'), '#'.repeat(65_537))
  t.equal(await readHosts(root), undefined)
})

test('the servers of the machine are asked without the server of the node, and read again after 10 s', async (t) => {
  const root = testFolder(t)
  const clock = fakeClock()
  const servers = machineServers(root, clock)
  t.same(await servers(), [], 'there is no file')
  await mkdir(join(root, 'etc'))
  const text = 'nameserver 169.254.20.10\nnameserver 127.0.0.53\nnameserver 192.0.2.1\n'
  await writeFile(join(root, 'etc/resolv.conf'), text)
  t.same(await servers(), [])
  await clock.advance(10_000)
  t.same(await servers(), ['127.0.0.53', '192.0.2.1'], 'servers on the machine itself can be reached from it')
})
