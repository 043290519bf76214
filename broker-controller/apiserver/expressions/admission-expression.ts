/** Expressions about a write, compiled (apiserver/pkg/admission/plugin/cel/compile.go). */
import { type CelType, typeText } from '../../cel/checking/types.ts'
import { checkedExpression, compileExpression } from '../../cel/compiled-expression.ts'
import type { Program } from '../../cel/program.ts'
import { type DeclaredVariables, variableTypes } from './admission-variables.ts'

export type AdmissionExpression = {
  readonly source: string
  readonly type: CelType
  readonly program: Program
}

/** An expression that does not compile, or whose result may have another type. */
export type ExpressionProblem = { readonly source: string; readonly problem: string }

/** An expression is compiled in one turn of the event loop. */
const longestExpression = 8_192

/** What the result of an expression must be; `any`: it is a variable. */
export type WantedResult = 'bool' | 'string' | 'text' | 'any'

const wantedTypes: { readonly [wanted in Exclude<WantedResult, 'any'>]: readonly [string, ...string[]] } = {
  bool: ['bool'],
  string: ['string'],
  text: ['string', 'null_type'],
}

/** The expression, or its problem as Kubernetes words it. */
export function admissionExpression(
  source: string,
  declared: DeclaredVariables,
  wanted: WantedResult,
): AdmissionExpression | ExpressionProblem {
  if (source.length > longestExpression) {
    return { source, problem: `may not be more than ${longestExpression} characters` }
  }
  const made = compileExpression(source, variableTypes(declared))
  if (typeof made === 'string') return { source, problem: `compilation failed: ${made}` }
  const { type } = made.checked
  if (wanted !== 'any') {
    const types = wantedTypes[wanted]
    const found = type.kind === 'null' ? 'null_type' : typeText(type)
    if (!types.includes(found)) {
      const all = types.length === 1 ? types[0] : `one of [${types.join(' ')}]`
      return { source, problem: `must evaluate to ${all} but got ${found}` }
    }
  }
  return { source, type, program: made.program }
}

/** The type of what an expression evaluates to, or its problem as cel-go words it. */
export function expressionType(source: string, declared: DeclaredVariables): CelType | { readonly problem: string } {
  if (source.length > longestExpression) return { problem: `may not be more than ${longestExpression} characters` }
  const checked = checkedExpression(source, variableTypes(declared))
  return typeof checked === 'string' ? { problem: checked } : checked.type
}
