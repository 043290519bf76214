import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { Integer } from 'typebox/type'
import { mapOf, object, oneOf, optional, text } from '../../api/schema.ts'
import { testFolder } from '../testing/test-folder.ts'
import { ConfigurationError, decodeConfiguration, readConfigurationFile } from './configuration-file.ts'

const schema = object({
  apiVersion: oneOf('bramble.dev/v1alpha1'),
  kind: oneOf('AgentConfiguration'),
  maxPods: optional(Integer({ minimum: 1 })),
  evictionHard: optional(mapOf(text)),
})
const head = 'apiVersion: bramble.dev/v1alpha1\nkind: AgentConfiguration\n'

const problemsOf = (source: string): readonly string[] => {
  try {
    decodeConfiguration(source, schema, 'agent.yaml')
    return []
  } catch (error) {
    if (error instanceof ConfigurationError) return [...error.problems]
    throw error
  }
}

test('a file is read and typed', async (t) => {
  const path = join(testFolder(t), 'agent.yaml')
  await writeFile(path, `${head}maxPods: 20\nevictionHard:\n  memory.available: 5%\n`)
  t.same(await readConfigurationFile(path, schema), {
    apiVersion: 'bramble.dev/v1alpha1',
    kind: 'AgentConfiguration',
    maxPods: 20,
    evictionHard: { 'memory.available': '5%' },
  })
})

test('all problems are reported at once, unknown fields among them', async (t) => {
  t.same(problemsOf(`${head}maxPods: 0\nmaxPod: 3\nevictionHard: {memory.available: 5}\n`), [
    'maxPods: Invalid value: 0: must be at least 1',
    'evictionHard[memory.available]: Invalid value: 5: must be text',
    'maxPod: Unknown field',
  ])
  t.same(problemsOf(''), ['the file: Required value'])
  t.same(problemsOf('kind: AgentConfiguration\n'), ['apiVersion: Required value'])
})

test('an error of the YAML syntax names the place', async (t) => {
  t.match(problemsOf(`${head}maxPods: [1\n`), [/at line \d+, column \d+/])
  t.same(problemsOf(`${head}maxPods: 1\nmaxPods: 2\n`), ['line 4: key "maxPods" already set in map'])
})

test('a file that is not UTF-8 is refused: its characters would be others', async (t) => {
  const bytes = Buffer.from(`${head}maxPods: 1 # caf\xe9\n`, 'latin1')
  t.throws(() => decodeConfiguration(bytes, schema, 'agent.yaml'), { message: /it is not UTF-8/ })
})

test('numbers are those of YAML 1.1, as in the configuration of a kubelet', async (t) => {
  t.same(decodeConfiguration(`${head}maxPods: 0x10\n`, schema, 'agent.yaml').maxPods, 16)
})

test('a missing file is reported with its cause', async (t) => {
  const path = join(testFolder(t), 'none.yaml')
  await t.rejects(readConfigurationFile(path, schema), {
    name: 'ConfigurationError',
    message: `Cannot read configuration file ${path}`,
    cause: { code: 'ENOENT' },
  })
})
