//! The usage model as a plan for a load generator (JMeter), so that a trial can be run again with the same mix.
//!
//! Input: a [`UsageModel`]; output: a JMeter test plan. For each class a thread group with its customers; each thread runs
//! sessions after one another: a script draws the first service and, after each request, the next, by the class's chain;
//! a switch sends the request of the service drawn; a timer waits for a think time of the class's law between requests.
//!
//! Paths of services are guesses (`/` and the service's name) unless they are given. Laws that JMeter's timers do not have
//! are drawn in the script.

use std::fmt::Write as _;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{
    lqn::{LqnOptions, UsageError, UsageWorkload},
    model::{BehaviourClass, UsageModel},
    think::{BelowZero, ThinkLaw},
};

/// What a plan needs beyond the usage model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlanOptions {
    /// Host of the requests.
    pub host: String,
    /// Customers over all classes; by default the mean number of active sessions.
    pub customers: Option<f64>,
    /// How long the plan runs, seconds.
    pub duration_s: u64,
    /// Service → path of its request.
    pub paths: IndexMap<String, String>,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self { host: "localhost".to_owned(), customers: None, duration_s: 600, paths: IndexMap::new() }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Rows of cumulated probabilities as a Groovy list.
fn cumulated(probabilities: impl Iterator<Item = f64>) -> String {
    let mut sum = 0.0;
    let row: Vec<String> = probabilities
        .map(|p| {
            sum += p;
            sum.to_string()
        })
        .collect();
    format!("[{}] as double[]", row.join(", "))
}

/// Groovy that draws a think time in seconds from `r`, a `java.util.Random`.
fn groovy(law: Option<&ThinkLaw>) -> String {
    match law {
        None => "0.0d".to_owned(),
        Some(ThinkLaw::Constant { mean_s }) => format!("{mean_s}d"),
        Some(ThinkLaw::Exponential { mean_s }) => format!("-{mean_s}d * Math.log(1.0d - r.nextDouble())"),
        Some(ThinkLaw::LogNormal { mu, sigma }) => format!("Math.exp({mu}d + {sigma}d * r.nextGaussian())"),
        Some(ThinkLaw::Gamma { shape, scale_s }) => {
            format!("new org.apache.commons.math3.distribution.GammaDistribution({shape}d, {scale_s}d).sample()")
        }
        Some(ThinkLaw::Normal { location_s, scale_s, below_zero: BelowZero::Clamped }) => {
            format!("Math.max(0.0d, {location_s}d + {scale_s}d * r.nextGaussian())")
        }
        Some(ThinkLaw::Normal { location_s, scale_s, below_zero: BelowZero::Truncated }) => {
            format!("({{ -> double t = -1.0d; while (t < 0.0d) {{ t = {location_s}d + {scale_s}d * r.nextGaussian() }}; t }}).call()")
        }
    }
}

fn script(class: &BehaviourClass) -> String {
    let behaviour = &class.behaviour;
    let n = behaviour.services.len();
    let mut rows = vec![cumulated(behaviour.start.iter().copied())];
    rows.extend((0..n).map(|i| cumulated(behaviour.transitions.row(i).iter().copied().chain([behaviour.exit[i]]))));
    format!(
        "def r = java.util.concurrent.ThreadLocalRandom.current()\n\
         def rows = [{}]\n\
         int at = vars.get('state') == null || vars.get('state') == '{n}' ? -1 : vars.get('state') as int\n\
         double[] row = rows[at + 1]\n\
         double u = r.nextDouble() * row[row.length - 1]\n\
         int next = 0\n\
         while (next < row.length - 1 && u >= row[next]) next++\n\
         vars.put('state', next as String)\n\
         vars.put('think', (at < 0 || next == {n}) ? '0' : Math.round(1000 * ({})) as String)\n",
        rows.join(",\n            "),
        groovy(behaviour.think.as_ref())
    )
}

impl UsageModel {
    /// The usage model as a JMeter test plan (XML).
    ///
    /// # Errors
    /// [`UsageError::Value`] for a number of customers below 1.
    pub fn to_jmeter(&self, options: &PlanOptions) -> Result<String, UsageError> {
        let lqn = LqnOptions { workload: UsageWorkload::Closed { customers: options.customers }, ..LqnOptions::default() };
        let customers = self.customers_of_classes(&lqn)?;
        let mut xml = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<jmeterTestPlan version=\"1.2\" properties=\"5.0\">\n<hashTree>\n\
             <TestPlan guiclass=\"TestPlanGui\" testclass=\"TestPlan\" testname=\"usage\" enabled=\"true\"/>\n<hashTree>\n",
        );
        for (class, n) in self.classes.iter().zip(customers) {
            self.write_group(&mut xml, class, n, options);
        }
        xml.push_str("</hashTree>\n</hashTree>\n</jmeterTestPlan>\n");
        Ok(xml)
    }

    fn write_group(&self, xml: &mut String, class: &BehaviourClass, n: u64, options: &PlanOptions) {
        let name = escaped(&class.behaviour.name);
        let _ = write!(
            xml,
            "<ThreadGroup guiclass=\"ThreadGroupGui\" testclass=\"ThreadGroup\" testname=\"{name}\" enabled=\"true\">\n\
             <intProp name=\"ThreadGroup.num_threads\">{n}</intProp>\n<intProp name=\"ThreadGroup.ramp_time\">0</intProp>\n\
             <boolProp name=\"ThreadGroup.scheduler\">true</boolProp>\n<longProp name=\"ThreadGroup.duration\">{}</longProp>\n\
             <elementProp name=\"ThreadGroup.main_controller\" elementType=\"LoopController\">\n\
             <boolProp name=\"LoopController.continue_forever\">false</boolProp>\n<intProp name=\"LoopController.loops\">-1</intProp>\n\
             </elementProp>\n</ThreadGroup>\n<hashTree>\n\
             <JSR223Sampler guiclass=\"TestBeanGUI\" testclass=\"JSR223Sampler\" testname=\"next\" enabled=\"true\">\n\
             <stringProp name=\"scriptLanguage\">groovy</stringProp>\n<stringProp name=\"cacheKey\">{name}</stringProp>\n\
             <stringProp name=\"script\">{}SampleResult.setIgnore()\n</stringProp>\n</JSR223Sampler>\n<hashTree/>\n\
             <SwitchController guiclass=\"SwitchControllerGui\" testclass=\"SwitchController\" testname=\"service\" enabled=\"true\">\n\
             <stringProp name=\"SwitchController.value\">${{state}}</stringProp>\n</SwitchController>\n<hashTree>\n",
            options.duration_s,
            escaped(&script(class)),
        );
        for service in &self.services {
            let path = options.paths.get(service).cloned().unwrap_or_else(|| format!("/{}", service.trim_start_matches('/')));
            let (service, path, host) = (escaped(service), escaped(&path), escaped(&options.host));
            let _ = write!(
                xml,
                "<HTTPSamplerProxy guiclass=\"HttpTestSampleGui\" testclass=\"HTTPSamplerProxy\" testname=\"{service}\" enabled=\"true\">\n\
                 <stringProp name=\"HTTPSampler.domain\">{host}</stringProp>\n<stringProp name=\"HTTPSampler.path\">{path}</stringProp>\n\
                 <stringProp name=\"HTTPSampler.method\">GET</stringProp>\n</HTTPSamplerProxy>\n<hashTree>\n\
                 <ConstantTimer guiclass=\"ConstantTimerGui\" testclass=\"ConstantTimer\" testname=\"think\" enabled=\"true\">\n\
                 <stringProp name=\"ConstantTimer.delay\">${{think}}</stringProp>\n</ConstantTimer>\n<hashTree/>\n</hashTree>\n"
            );
        }
        // The place of Exit: nothing is sent.
        xml.push_str(
            "<TestAction guiclass=\"TestActionGui\" testclass=\"TestAction\" testname=\"exit\" enabled=\"true\">\n\
             <intProp name=\"ActionProcessor.action\">1</intProp>\n<intProp name=\"ActionProcessor.target\">0</intProp>\n\
             <stringProp name=\"ActionProcessor.duration\">0</stringProp>\n</TestAction>\n<hashTree/>\n</hashTree>\n</hashTree>\n",
        );
    }
}
