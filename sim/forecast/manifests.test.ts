import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { readManifests } from './manifests.ts'

const named = (kind: string, name: string) => `{apiVersion: v1, kind: ${kind}, metadata: {name: ${name}}}\n`

test('manifests are read from files, folders and the file of the simulation, with several documents and lists', async (t) => {
  const folder = testFolder(t)
  await mkdir(join(folder, 'apps'))
  await writeFile(join(folder, 'one.yaml'), `# first\n---\n${named('Pod', 'a')}--- # second\n${named('Pod', 'b')}---\n`)
  await writeFile(join(folder, 'apps', 'list.yml'), `{apiVersion: v1, kind: List, items: [${named('Service', 'c')}]}`)
  await writeFile(join(folder, 'apps', 'notes.txt'), 'not a manifest')
  const objects = [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'd' } }]
  const read = await readManifests({ manifests: ['one.yaml', 'apps'], objects }, join(folder, 'story.yaml'))
  t.same(
    read.map(({ object }) => `${object.kind} ${object.metadata.name}`),
    ['Pod a', 'Pod b', 'Service c', 'ConfigMap d'],
  )
  t.equal(read[1]?.place, `${join(folder, 'one.yaml')}: document 3`)
})

test('what cannot be read is named with its place', async (t) => {
  const folder = testFolder(t)
  const path = join(folder, 'story.yaml')
  await writeFile(join(folder, 'broken.yaml'), `${named('Pod', 'a')}---\n{`)
  await writeFile(join(folder, 'unnamed.yaml'), '{apiVersion: v1, kind: Pod, metadata: {}}')
  await mkdir(join(folder, 'empty'))
  const from = (...manifests: string[]) => readManifests({ manifests }, path)
  await t.rejects(from('absent.yaml'), { message: /^Cannot read the manifest .*absent\.yaml/ })
  await t.rejects(from('empty'), { message: /^There is no \.yaml, \.yml or \.json file in .*empty/ })
  await t.rejects(from('broken.yaml'), { message: /broken\.yaml: document 2 is not YAML/ })
  await t.rejects(from('unnamed.yaml'), {
    message: /unnamed\.yaml: document 1 is not a manifest:\n {2}metadata\.name: Required value/,
  })
  await t.rejects(readManifests({ objects: [7] }, path), { message: /story\.yaml: objects\[0\] is not a manifest/ })
})
