import { createHash } from 'node:crypto'
import { chmod, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { testFolder } from '../../../../daemon/testing/test-folder.ts'
import { crc64 } from './crc64.ts'
import { imageDamage, namedImages } from './image-files.ts'
import { chainIDs } from './layer-check.ts'

const signal = new AbortController().signal
const sha256 = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`

function checksumOf(content: string): string {
  const sum = crc64()
  sum.add(Buffer.from(content))
  return sum.digest().toString('base64')
}

type Files = { readonly [name: string]: string }

/** A store of Docker with one image, whose layers have these files. */
async function storeWith(t: Test, layers: readonly Files[], more: readonly object[] = []) {
  const root = await testFolder(t)
  const put = async (path: string, content: string | Buffer) => {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), content)
  }
  const diffIDs = layers.map((files) => sha256(JSON.stringify(files)))
  for (const [index, chainID] of chainIDs(diffIDs).entries()) {
    const record = `image/overlay2/layerdb/${chainID.replace(':', '/')}`
    const files = Object.entries(layers[index] ?? {})
    const entries = files.flatMap(([name, content]) => [
      { type: 2, payload: Buffer.alloc(700).toString('base64') },
      { type: 1, name, ...(content === '' ? {} : { size: content.length }), payload: checksumOf(content) },
    ])
    await put(`${record}/cache-id`, `cache${index}`)
    await put(
      `${record}/tar-split.json.gz`,
      gzipSync([...entries, ...more].map((one) => JSON.stringify(one)).join('\n')),
    )
    await put(`overlay2/cache${index}/link`, `LINK${index}`)
    await mkdir(join(root, 'overlay2/l'), { recursive: true })
    await symlink(`../cache${index}/diff`, join(root, `overlay2/l/LINK${index}`))
    await mkdir(join(root, `overlay2/cache${index}/diff`))
    for (const [name, content] of files) if (content !== '') await put(`overlay2/cache${index}/diff/${name}`, content)
  }
  const configuration = JSON.stringify({ rootfs: { type: 'layers', diff_ids: diffIDs } })
  const id = sha256(configuration)
  const configurationFile = `image/overlay2/imagedb/content/${id.replace(':', '/')}`
  await put(configurationFile, configuration)
  await put('image/overlay2/repositories.json', JSON.stringify({ Repositories: { busy: { 'busy:1': id } } }))
  return {
    root,
    id,
    put,
    configurationFile,
    damage: () => imageDamage(root, id, signal),
    layer: (index: number) => `in its layer ${chainIDs(diffIDs)[index]?.slice(0, 19)}`,
  }
}

const layers: readonly Files[] = [
  { './bin/busybox': 'ELF busybox', 'etc/passwd': 'root' },
  { 'app/main.py': 'print(1)' },
]

test('the names of images, also of one whose configuration is damaged', async (t) => {
  const { root, id, put, configurationFile } = await storeWith(t, layers)
  t.same(await namedImages(root), [{ name: 'busy:1', id }])
  await put(configurationFile, '')
  t.same(await namedImages(root), [{ name: 'busy:1', id }])
  await put('image/overlay2/repositories.json', '{"Repositories":{"x":null,"y":{"y:1":7,"y@sha256:1":"z"}}}')
  t.same(await namedImages(root), [])
  t.same(await namedImages(join(root, 'nothing')), [])
})

test('an image as it was unpacked is not damaged', async (t) => {
  const { damage } = await storeWith(t, layers)
  t.equal(await damage(), undefined)
})

test('a file that is missing, empty, cut or another one is damage, in any layer', async (t) => {
  const { root, damage, layer, put } = await storeWith(t, layers)
  await put('overlay2/cache1/diff/app/main.py', '')
  t.equal(await damage(), `the file "/app/main.py" has 0 of 8 bytes ${layer(1)}`)
  await put('overlay2/cache0/diff/bin/busybox', 'ELF')
  t.equal(await damage(), `the file "/bin/busybox" has 3 of 11 bytes ${layer(0)}`)
  await rm(join(root, 'overlay2/cache0/diff/bin'), { recursive: true })
  t.equal(await damage(), `the file "/bin/busybox" is missing ${layer(0)}`)
})

test('a program that begins with zeros is damage, a file of data is not', async (t) => {
  const { root, damage, layer, put } = await storeWith(t, layers)
  await put('overlay2/cache0/diff/etc/passwd', '\0\0\0\0')
  t.equal(await damage(), undefined)
  await put('overlay2/cache0/diff/bin/busybox', '\0'.repeat(11))
  await chmod(join(root, 'overlay2/cache0/diff/bin/busybox'), 0o755)
  t.equal(await damage(), `the file "/bin/busybox" begins with zeros ${layer(0)}`)
})

test('a file that was unpacked with zeros at its start is not damaged, whatever its mode is', async (t) => {
  const zeros = '\0'.repeat(5_000)
  const { root, damage, layer, put } = await storeWith(t, [{ 'data/disk.img': `${zeros}a`, 'lib/x.so.1': `${zeros}b` }])
  await chmod(join(root, 'overlay2/cache0/diff/data/disk.img'), 0o755)
  t.equal(await damage(), undefined)
  await put('overlay2/cache0/diff/lib/x.so.1', `${zeros}\0`)
  t.equal(await damage(), `the file "/lib/x.so.1" begins with zeros ${layer(0)}`)
})

test('a file that this process cannot look at is neither damaged nor in order', async (t) => {
  const name = `etc/${'x'.repeat(300)}`
  for (const [index, entry] of [name, `${name}/file`].entries()) {
    const { damage } = await storeWith(t, [{ 'etc/passwd': 'root' }], [{ type: 1, name: entry, size: 3 + index }])
    await t.rejects(damage(), { code: 'ENAMETOOLONG' })
  }
})

test('files of each folder are looked at, whichever folder was before', async (t) => {
  const files = { 'a/b/c/1': 'x', 'a/b/2': 'x', 'a/b/c/3': 'x', 'd/4': 'x', 'a/5': 'x', '6': 'x' }
  for (const name of Object.keys(files)) {
    const { root, damage } = await storeWith(t, [files])
    t.equal(await damage(), undefined)
    await rm(join(root, 'overlay2/cache0/diff', name))
    t.match(await damage(), `the file "/${name}" is missing`)
  }
  const { root, damage } = await storeWith(t, [{ 'a/b/1': 'x', 'a/b/c/2': 'x', 'a/d/3': 'x', 'a/4': 'x' }])
  await rm(join(root, 'overlay2/cache0/diff/a/b'), { recursive: true })
  await symlink('d', join(root, 'overlay2/cache0/diff/a/b'))
  t.equal(await damage(), undefined, 'what is behind a link is left out')
  await rm(join(root, 'overlay2/cache0/diff/a/d/3'))
  t.match(await damage(), 'the file "/a/d/3" is missing')
})

test('what Docker needs to mount a layer, and the configuration of the image', async (t) => {
  for (const [path, expected] of [
    ['overlay2/cache0/link', /^the file "link" is damaged in its layer sha256:/],
    ['image/overlay2/layerdb', /^the file "cache-id" is missing in its layer/],
    ['overlay2/cache1/diff', /^the folder "diff" is missing in its layer/],
    ['overlay2/l/LINK1', /^the link l\/LINK1 is missing in its layer/],
  ] as const) {
    const { root, damage, put } = await storeWith(t, layers)
    await rm(join(root, path), { recursive: true })
    if (path.endsWith('link')) await put(path, '')
    t.match(await damage(), expected, path)
  }
  const { damage, put, configurationFile, root } = await storeWith(t, layers)
  await put(configurationFile, '')
  t.match(await damage(), 'its configuration is damaged (0 bytes')
  await rm(join(root, configurationFile))
  t.equal(await damage(), 'its configuration is missing')
})

test('links of a layer are not followed out of it, and names that lead out of it are ignored', async (t) => {
  const { root, damage, put } = await storeWith(
    t,
    [{ 'etc/passwd': 'root' }],
    [
      { type: 1, name: 'out/file', size: 3 },
      { type: 1, name: '../../outside', size: 3 },
      { type: 1, name: 'etc/.wh.shadow', size: 3 },
      { type: 1, name: 7, size: 'x' },
    ],
  )
  await put('outside/file', 'x')
  await symlink(join(root, 'outside'), join(root, 'overlay2/cache0/diff/out'))
  t.equal(await damage(), undefined)
})

test('of a file that an archive has twice the later one is on the disk', async (t) => {
  const { damage } = await storeWith(
    t,
    [{ 'etc/passwd': 'root' }],
    [
      { type: 1, name: 'etc/twice', size: 1 },
      { type: 1, name: 'etc/other', size: 4 },
      { type: 1, name: 'etc/twice', size: 4 },
    ],
  )
  t.match(await damage(), 'the file "/etc/twice" is missing')
  const { damage: whole, put } = await storeWith(
    t,
    [{ 'etc/passwd': 'root' }],
    [
      { type: 1, name: 'etc/twice', size: 1 },
      { type: 1, name: 'etc/twice', size: 4 },
    ],
  )
  await put('overlay2/cache0/diff/etc/twice', 'four')
  t.equal(await whole(), undefined)
})

test('nothing is reported of files whose record is damaged', async (t) => {
  const { root, damage, put } = await storeWith(t, [{ 'etc/passwd': 'root' }])
  const [record = ''] = chainIDs([sha256(JSON.stringify({ 'etc/passwd': 'root' }))])
  const path = `image/overlay2/layerdb/${record.replace(':', '/')}/tar-split.json.gz`
  await put(path, '')
  t.equal(await damage(), undefined)
  await put(path, 'not gzip')
  t.equal(await damage(), undefined)
  await rm(join(root, path))
  t.equal(await damage(), undefined)
})
