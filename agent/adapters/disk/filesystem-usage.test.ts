import { test } from 'tap'
import { filesystemUsage } from './filesystem-usage.ts'

test('a filesystem that hangs holds one thread, however many ask', async (t) => {
  let asked = 0
  const filesystemAt = filesystemUsage(() => {
    asked++
    return new Promise<never>(() => undefined)
  })
  t.same(await Promise.all(['/slow', '/slow', '/slow'].map(filesystemAt)), [undefined, undefined, undefined])
  t.equal(asked, 1)
})

test('a filesystem tells what it holds; one that is not there tells nothing', async (t) => {
  const filesystemAt = filesystemUsage()
  t.match(await filesystemAt('/'), { capacityBytes: Number, usedBytes: Number, inodes: Number })
  t.equal(await filesystemAt('/no/such/folder'), undefined)
})
