/** A program's YAML file → its typed configuration, or everything that is wrong with it. */
import { readFile } from 'node:fs/promises'
import { decode } from '../../api/decode.ts'
import { type Problem, problemText } from '../../api/problem.ts'
import type { Described, TSchema } from '../../api/schema.ts'
import { messageOf } from '../errors.ts'
import { readYaml } from '../yaml/yaml-reader.ts'

/** The configuration cannot be used; starting again will not help. `problems`: one sentence each. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError'
  readonly problems: readonly string[]

  constructor(message: string, problems: readonly string[] = [], options?: { cause?: unknown }) {
    super(
      problems.length === 0 ? message : `${message}\n${problems.map((problem) => `  ${problem}`).join('\n')}`,
      options,
    )
    this.problems = problems
  }
}

/** Names of the fields of a file that hold such a value. */
export type FieldOf<File, Value> = {
  [Name in keyof File]-?: NonNullable<File[Name]> extends Value ? Name : never
}[keyof File]

/** Throws ConfigurationError when the file cannot be read or is not what `schema` describes. JSON is YAML too. */
export async function readConfigurationFile<const S extends TSchema>(path: string, schema: S): Promise<Described<S>> {
  return decodeConfiguration(await contentOf(path), schema, path)
}

/** The same for a text; `path` is for the message. A field that is not in the schema is a problem: it may be a typo. */
export function decodeConfiguration<const S extends TSchema>(
  source: string | Buffer,
  schema: S,
  path: string,
): Described<S> {
  const decoded = decode(schema, yamlContent(source, path))
  const problems = decoded.ok ? [] : decoded.problems.map(problemAtTop)
  const unknown = decoded.unknownFields.map((field) => `${field}: Unknown field`)
  if (decoded.ok && unknown.length === 0) return decoded.value
  throw new ConfigurationError(`Configuration file ${path} is not valid:`, [...problems, ...unknown])
}

async function contentOf(path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (cause) {
    throw new ConfigurationError(`Cannot read configuration file ${path}`, [], { cause })
  }
}

function yamlContent(source: string | Buffer, path: string): unknown {
  try {
    return readYaml(source)
  } catch (error) {
    throw new ConfigurationError(`Configuration file ${path} is not YAML:`, [messageOf(error)])
  }
}

function problemAtTop(problem: Problem): string {
  return problem.field === '' ? `the file: ${problem.message}` : problemText(problem)
}
