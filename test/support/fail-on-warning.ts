/**
 * `node --import fail-on-warning.js x.test.js`: the file fails if its process emits a warning of Node.js. scripts/real-tests.ts and
 * .taprc have each test file run with it that has a process of its own; scripts/unit-test-worker.ts does the same for the others.
 */
import { isMainThread } from 'node:worker_threads'

// Programs that a test forks inherit the options of Node.js. What the warnings of those mean is decided by the test.
if (isMainThread && process.argv[1]?.endsWith('.test.js') === true) {
  const warnings: string[] = []
  // Node.js prints each on stderr, too, and tap passes that through.
  process.on('warning', ({ name, message, stack }) => void warnings.push(stack ?? `${name}: ${message}`))
  process.on('exit', () => {
    if (warnings.length === 0) return
    process.stderr.write(`This test fails: its process emitted warnings.\n${warnings.join('\n')}\n`)
    process.exitCode = 1
  })
}
