import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'

test('a child process starts after an upgrade has removed the Node.js of this one', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-own-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const node = join(folder, 'node')
  const script = join(folder, 'script.mjs')
  const module = fileURLToPath(new URL('own-executable.js', import.meta.url))
  await copyFile(process.execPath, node)
  await writeFile(
    script,
    `import { spawnSync } from 'node:child_process'
     import { unlinkSync } from 'node:fs'
     import { ownExecutable } from ${JSON.stringify(module)}
     unlinkSync(process.execPath)
     const start = (file) => spawnSync(file, ['-p', '40 + 2'], { encoding: 'utf8' })
     console.log(start(process.execPath).error?.code, start(ownExecutable).stdout)`,
  )
  const { stdout } = await promisify(execFile)(node, [script])
  t.equal(stdout.trim(), 'ENOENT 42')
})
