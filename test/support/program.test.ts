import { test } from 'tap'
import { processWarnings } from './process-warnings.ts'
import { startProgram } from './program.ts'

test('a program that prints a warning of Node fails its test', async (t) => {
  const end = async (script: string) => {
    const ends: (() => Promise<unknown>)[] = []
    await startProgram([process.execPath, '-e', script], (stop) => ends.push(stop)).ended
    for (const stop of ends) await stop()
  }
  await t.rejects(end("for (let i = 0; i < 11; i++) process.on('SIGHUP', () => {})"), {
    message: /printed warnings:\n\(node:\d+\) MaxListenersExceededWarning/,
  })
  await t.rejects(end("process.emitWarning('old', 'DeprecationWarning', 'DEP0001')"), {
    message: /\[DEP0001\] DeprecationWarning: old/,
  })
  await t.resolves(end("console.log(JSON.stringify({ level: 'warn', message: 'Warning: a pod is ill' }))"))
})

test('only lines of Node count as warnings', async (t) => {
  const output = ['(node:7) Warning: a', 'Warning: b', 'x (node:7) Warning: c', '(Use `node --trace-warnings ...`)']
  t.same(processWarnings(output.join('\n')), ['(node:7) Warning: a'])
})
