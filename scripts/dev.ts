/**
 * While you work: compiles and type-checks after each change, for the tests, and bundles the programs again. Until it is interrupted.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const watchers = [
  [join(root, 'node_modules/typescript/bin/tsc'), '--watch', '--preserveWatchOutput'],
  [join(root, 'dist/scripts/build.js'), '--watch'],
].map((command) => spawn(process.execPath, command, { cwd: root, stdio: 'inherit' }))

const stop = () => {
  for (const watcher of watchers) watcher.kill()
}
// One of them failed and printed why; the output of the other would hide it.
for (const watcher of watchers) watcher.once('exit', stop)
process.once('SIGINT', stop)
process.once('SIGTERM', stop)
