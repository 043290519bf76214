import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { until } from '../../testing/until.ts'
import { manifestFolder } from './manifest-folder.ts'

test('manifests are YAML or JSON files in one folder', async (t) => {
  const path = await mkdtemp(join(tmpdir(), 'bramble-manifests-'))
  t.teardown(() => rm(path, { recursive: true, force: true }))
  const folder = manifestFolder(path)
  t.same(await folder.read(), [])
  await writeFile(join(path, 'b.json'), '{"kind":"Pod"}')
  await writeFile(join(path, 'a.yaml'), 'kind: Pod\n')
  await writeFile(join(path, 'c.yml'), 'kind: [')
  await writeFile(join(path, 'circle.yml'), 'metadata: &m\n  labels: *m\n')
  await writeFile(join(path, 'empty.yml'), '')
  await writeFile(join(path, 'latin1.yaml'), Buffer.from('kind: caf\xe9\n', 'latin1'))
  await writeFile(join(path, 'long.yaml'), 'x'.repeat(1024 * 1024 + 1))
  await writeFile(join(path, '.hidden.yaml'), 'kind: Pod')
  await writeFile(join(path, 'README'), 'nothing')
  await mkdir(join(path, 'folder.yaml'))
  const files = await folder.read()
  t.match(files, [
    { path: join(path, 'a.yaml'), content: { kind: 'Pod' } },
    { path: join(path, 'b.json'), content: { kind: 'Pod' } },
    { path: join(path, 'c.yml'), problem: /^it is not YAML: .* at line 1/ },
    { path: join(path, 'circle.yml'), problem: "it is not YAML: line 2: anchor 'm' value contains itself" },
    { path: join(path, 'empty.yml'), content: null },
    { path: join(path, 'latin1.yaml'), problem: 'it is not YAML: it is not UTF-8' },
    { path: join(path, 'long.yaml'), problem: 'it is longer than 1048576 bytes' },
  ])
  t.equal((await folder.read())[0], files[0], 'what did not change is not read again')
  await writeFile(join(path, 'x'), 'kind: Node')
  await rename(join(path, 'x'), join(path, 'a.yaml'))
  t.match((await folder.read())[0], { content: { kind: 'Node' } })
  t.same(await manifestFolder(join(path, 'none')).read(), [])
  await t.rejects(manifestFolder(join(path, 'README')).read(), { code: 'ENOTDIR' })
})

test('a manifest means what it means to the kubelet', async (t) => {
  const path = await mkdtemp(join(tmpdir(), 'bramble-manifests-'))
  t.teardown(() => rm(path, { recursive: true, force: true }))
  await writeFile(join(path, 'a.yaml'), 'defaultMode: 0440\nreadOnly: yes\n---\nkind: Node\n')
  t.match(await manifestFolder(path).read(), [{ content: { defaultMode: 0o440, readOnly: true } }])
})

test('listeners get each change, and a missing folder is not an error', async (t) => {
  const path = await mkdtemp(join(tmpdir(), 'bramble-manifests-'))
  t.teardown(() => rm(path, { recursive: true, force: true }))
  const stopping = new AbortController()
  let changes = 0
  const writes: Promise<void>[] = []
  const watching = manifestFolder(path).watch(() => changes++, stopping.signal)
  await until('the change is emitted', () => {
    writes.push(writeFile(join(path, 'a.yaml'), 'kind: Pod'))
    return changes > 0
  })
  await Promise.all(writes)
  stopping.abort()
  await watching
  await manifestFolder(join(path, 'none')).watch(() => undefined, new AbortController().signal)
})
