/** The disk of the machine and the double of the tests of power cuts give the same answers. */
import { statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { codeOf } from '../errors.ts'
import { powerCutDisk } from '../testing/power-cut-disk.ts'
import { testFolder } from '../testing/test-folder.ts'
import { fileDisk } from './file-disk.ts'
import { copyOn, replaceOn, type UpdateDisk } from './update-disk.ts'

const bytes = (text: string) => Buffer.from(text)

async function answers(disk: UpdateDisk, root: string): Promise<readonly unknown[]> {
  const given: unknown[] = []
  const at = (path: string) => (path === '.' ? root : join(root, path))
  const read = async (path: string) => {
    const content = await disk.read(at(path))
    given.push(content === undefined ? undefined : Buffer.from(content).toString())
  }
  const list = async (path: string) => given.push([...(await disk.list(at(path)))].sort())
  const tried = (action: Promise<unknown>) =>
    action.then(() => given.push('done')).catch((error) => given.push(codeOf(error)))

  await read('none')
  await list('none')
  given.push(await disk.kindOf(at('none')))
  await disk.remove(at('none'))
  await tried(disk.rename(at('none'), at('other')))
  await tried(disk.write(at('no/folder'), bytes(''), 0o600))
  await disk.makeFolder(at('a'))
  await disk.makeFolder(at('a'))
  await disk.makeFolder(at('a/b'))
  await disk.write(at('a/b/one'), bytes('1'), 0o600)
  await disk.write(at('a/b/one'), bytes('2'), 0o600)
  await disk.sync(at('a/b/one'))
  await disk.syncFolder(at('a/b'))
  await replaceOn(disk, at('a'), 'two', 'second')
  await replaceOn(disk, at('a'), 'two', 'third')
  for (const path of ['a/b/one', 'a/two', 'a']) given.push(await disk.kindOf(at(path)))
  for (const path of ['a/b/one', 'a/two']) await read(path)
  const readPart = async (path: string, from: number, most: number) =>
    tried(disk.readPart(at(path), from, most).then((bytes) => given.push(Buffer.from(bytes).toString())))
  await disk.write(at('a/program'), bytes('first'), 0o755)
  await disk.append(at('a/program'), bytes(', second'))
  await disk.append(at('a/program'), bytes(''))
  for (const [from, most] of [
    [0, 5],
    [3, 100],
    [13, 1],
    [20, 1],
  ] as const)
    await readPart('a/program', from, most)
  await readPart('none', 0, 1)
  await tried(disk.append(at('none'), bytes('x')))
  for (const path of ['a/program', 'a/two', 'a', 'none']) given.push(await disk.fileOf(at(path)))
  await copyOn(disk, at('a'), at('copy'))
  await copyOn(disk, at('none'), at('nothing'))
  await list('.')
  await list('copy')
  await read('copy/b/one')
  await tried(disk.rename(at('copy'), at('a')))
  await disk.remove(at('a'))
  await disk.rename(at('copy'), at('a'))
  await read('a/b/one')
  await list('.')
  return given
}

test('the double of a disk answers as the disk does', async (t) => {
  const double = powerCutDisk()
  await double.makeFolder('/')
  const real = await answers(fileDisk, testFolder(t))
  t.same(await answers(double, '/'), real)
  t.ok(real.length > 15)
})

test('a file has its mode whatever the umask, and a link is nothing', async (t) => {
  const folder = testFolder(t)
  await fileDisk.write(join(folder, 'program'), bytes(''), 0o755)
  t.equal(statSync(join(folder, 'program')).mode & 0o777, 0o755)
  symlinkSync('/etc/passwd', join(folder, 'link'))
  t.equal(await fileDisk.kindOf(join(folder, 'link')), undefined)
  t.equal(await fileDisk.fileOf(join(folder, 'link')), undefined)
})
