import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { nodeLogs } from './node-logs.ts'

async function aMachine(t: Test) {
  const root = await mkdtemp(join(tmpdir(), 'bramble-logs-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  const folder = join(root, 'var/log')
  await mkdir(join(folder, 'apt'), { recursive: true })
  await writeFile(join(folder, 'syslog'), 'a line\n')
  await writeFile(join(folder, 'apt', 'term é'), 'x'.repeat(200_000))
  await writeFile(join(root, 'secret'), 'not a log')
  return { root, folder, read: nodeLogs(root) }
}

test('folders are listed, and files read whole', async (t) => {
  const { read } = await aMachine(t)
  t.same(await read(''), { kind: 'folder', names: ['apt/', 'syslog'] })
  t.same(await read('/apt/'), { kind: 'folder', names: ['term é'] })
  const file = await read('apt/term é')
  t.match(file, { kind: 'file', bytes: 200_000 })
  if (file?.kind === 'file') t.equal((await buffer(file.pieces)).length, 200_000)
  t.equal(await read('none'), undefined)
  t.equal(await read('syslog/below'), undefined)
  t.equal(await read(`${'x'.repeat(300)}`), undefined)
})

test('nothing else of the machine can be read: not by a path, a link or a device', async (t) => {
  const { root, folder, read } = await aMachine(t)
  await symlink(join(root, 'secret'), join(folder, 'link'))
  await symlink(root, join(folder, 'out'))
  execFileSync('mkfifo', [join(folder, 'pipe')])
  for (const path of ['../../secret', 'apt/../../../secret', 'link', 'out', 'out/secret', 'pipe', './syslog', 'a\0b']) {
    t.equal(await read(path), undefined, path)
  }
})
